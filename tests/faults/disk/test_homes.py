"""Folders that can never hold anything are one sentence, not a traceback; odd ones are used."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from runtime import locations
from runtime.errors import DecdecError

ROOT = Path(__file__).resolve().parents[3]
SETTINGS = [sys.executable, "-m", "app.cli.main", "settings"]
posix = pytest.mark.skipif(os.name != "posix", reason="names and links of POSIX")


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Set DECDEC_HOME to a name in a folder of the test's own."""

    def use(name):
        monkeypatch.setenv("DECDEC_HOME", os.path.join(tmp_path, name))
        return tmp_path / name

    return use


@posix
@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("loop", "loop"),
        ("d" * 300, "too long"),
        ("/".join(["d" * 200] * 25), "too long"),
        ("x\udcff", "UTF-8"),
    ],
)
def test_a_home_that_cannot_be_is_a_sentence_that_says_which_variable(home, tmp_path, name, why):
    (tmp_path / "loop").symlink_to("loop")
    home(name)
    for where in (locations.home, locations.settings_file, locations.history_file):
        with pytest.raises(DecdecError, match=rf"DECDEC_HOME names no folder.*{why}.*Set DECDEC_HOME"):
            where()


@posix
def test_the_program_says_it_without_a_traceback(home, tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    home("loop")
    done = subprocess.run(SETTINGS, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("DECDEC_HOME names no folder")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("given", ["~nobody-has-this-name/x", "~/x"])
def test_a_home_folder_that_nobody_has(monkeypatch, given):
    def nowhere(path):
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "expanduser", nowhere)
    monkeypatch.setenv("DECDEC_HOME", given)
    with pytest.raises(DecdecError, match="home directory"):
        locations.home()


def refuse(app):
    raise RuntimeError("could not determine the home directory")


@pytest.mark.parametrize("found", [refuse, lambda app: Path("~/.cache") / app])
def test_a_user_without_a_home_gets_no_folder_called_tilde(monkeypatch, found):
    monkeypatch.delenv("DECDEC_HOME", raising=False)
    monkeypatch.delenv("DECDEC_CACHE", raising=False)
    for kind in ("cache", "config", "data"):
        monkeypatch.setattr(locations.platformdirs, f"user_{kind}_path", found)
    for where in (locations.home, locations.settings_file, locations.history_file):
        with pytest.raises(DecdecError, match=r"your user has no home\. Set DECDEC_HOME"):
            where()


@posix
@pytest.mark.parametrize("name", ["sp ace é", "new\nline", "dangling", "file"])
def test_odd_homes_that_can_be_used_or_told_of(home, tmp_path, name):
    (tmp_path / "dangling").symlink_to(tmp_path / "not" / "there")
    (tmp_path / "file").write_text("mine")
    folder = home(name)
    code = "from app import settings_file as f; from app.settings import Settings as S; "
    code += "print(f.keep(S(), S(model='m')), f.load()[0].model)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    if name == "file":
        assert done.stdout.startswith("Settings could not be saved (")
        assert folder.read_text() == "mine"
    else:
        assert (done.stdout.strip(), done.stderr) == ("m", "")
        assert (folder / "settings.toml").is_file()
