"""Environment before settings: what is open is set from the file, once, for everything that asks it."""

import json
import os
import subprocess
import sys

import pytest

from app import environment
from runtime import device, locations
from runtime.errors import DecdecError
from tests.app.conftest import add_model


@pytest.fixture(autouse=True)
def bare(monkeypatch):
    for variable in environment.VARIABLES.values():
        monkeypatch.setenv(variable, "")
    monkeypatch.setattr(environment, "_ours", set())


def write(text):
    path = locations.settings_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def variables():
    return [os.environ.get(name) or None for name in ("DECDEC_DEVICE", "HF_ENDPOINT", "DECDEC_CACHE")]


def test_settings_fill_what_is_open(tmp_path):
    write(
        f'device = "cuda:1"\nhub_endpoint = "http://hub"\ncache_folder = "{(tmp_path / "big").as_posix()}"\n'
    )
    environment.apply()
    assert variables() == ["cuda:1", "http://hub", (tmp_path / "big").as_posix()]
    assert device.wanted() == "cuda:1"
    assert locations.models() == (tmp_path / "big" / "models").resolve()
    assert [environment.decides(name) for name in environment.VARIABLES] == ["", "", ""]


def test_the_environment_goes_before(monkeypatch):
    monkeypatch.setenv("DECDEC_DEVICE", "cpu")
    write('device = "cuda"\n')
    environment.apply()
    assert device.wanted() == "cpu"
    assert environment.decides("device") == "cpu"
    assert not environment.follow("device", "cuda:0")
    assert os.environ["DECDEC_DEVICE"] == "cpu"


def test_a_change_follows_and_goes_again():
    assert environment.follow("device", "cpu")
    assert device.wanted() == "cpu"
    assert environment.follow("device", "auto")
    assert device.wanted() == device.AUTOMATIC
    assert environment.follow("device", "")
    assert "DECDEC_DEVICE" not in os.environ


@pytest.mark.parametrize(
    "text", ["", "device =", 'device = "tpu"', "device = 3", "cache_folder = 'here'", "\x00", 'theme = "x"']
)
def test_what_is_wrong_changes_nothing(text):
    write(text)
    environment.apply()
    assert variables() == [None, None, None]


def test_nothing_is_imported_for_a_file_without_such_settings():
    write("# device = 'cpu'\ntheme = 'nord'\n")
    code = "import sys; from app import environment; environment.apply(); print('msgspec' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60)
    assert out.stdout.strip() == "False"


def test_commands_obey_the_settings(tmp_path, monkeypatch):
    big = (tmp_path / "big").as_posix()
    with monkeypatch.context() as context:
        context.setenv("DECDEC_CACHE", big)
        add_model("far-away")
    write(f'cache_folder = "{big}"\n')
    command = [sys.executable, "-m", "app.cli.main", "models", "--json"]
    env = {name: value for name, value in os.environ.items() if value}
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60, env=env)
    assert [model["name"] for model in json.loads(done.stdout)["models"]] == ["far-away"]


def test_a_chosen_folder_of_models_that_is_not_there_is_told_and_not_made(tmp_path, monkeypatch):
    write(f'cache_folder = "{(tmp_path / "disk" / "big").as_posix()}"\n')
    environment.apply()
    with pytest.raises(DecdecError, match=r"disk/big, is not there\. Mount its disk, or change cache_folder"):
        environment.require_models_folder()
    assert not (tmp_path / "disk").exists()
    (tmp_path / "disk" / "big").mkdir(parents=True)
    environment.require_models_folder()
    monkeypatch.setattr(environment, "_ours", set())
    monkeypatch.setenv("DECDEC_CACHE", str(tmp_path / "new"))
    environment.require_models_folder()
