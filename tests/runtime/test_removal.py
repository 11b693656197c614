"""The commands are run for real: what is ours is gone, what is not stays."""

import subprocess
import sys

import pytest

from runtime import locations, removal

OURS = [
    "models/m/manifest.json",
    "models/.staging-n/weights",
    "downloads/hub-owner--name/d",
    "locks/l",
    "logs/errors.log",
    "settings.toml",
    "settings.bad2",
    "history.db",
    "history-1.bad",
    "history-1.bad-wal",
    ".moving-to.json",
]
THEIRS = ["photos/cat.png", "notes.txt", ".movies/film", "settings.py", "history.txt", "history-old.bad"]


def fill(folder, names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"x")


def of_what_it_keeps():
    return removal.removal()[1]["command"]


def run_the_command():
    command = of_what_it_keeps()
    shell = ["powershell", "-Command", command] if sys.platform == "win32" else ["sh", "-c", command]
    subprocess.run(shell, check=True)


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A folder that a person chose, with a space and a quote in its name, and something of theirs in it."""
    folder = tmp_path / "it's mine"
    monkeypatch.setenv("DECDEC_HOME", str(folder))
    monkeypatch.delenv("DECDEC_CACHE", raising=False)
    fill(folder, THEIRS)
    return folder


def test_of_a_chosen_folder_only_what_is_ours_goes(home):
    fill(home, OURS)
    run_the_command()
    left = {path.relative_to(home).as_posix() for path in home.rglob("*") if path.is_file()}
    assert left == set(THEIRS)
    assert sorted(path.name for path in home.iterdir() if path.is_dir()) == [".movies", "photos"]
    assert of_what_it_keeps() == "there is nothing yet"


def test_of_folders_with_everyday_names_what_others_keep_there_stays(home):
    theirs = ["models/comfy/sd.ckpt", "downloads/thesis.pdf", "logs/captain.txt"]
    fill(home, [*OURS, *theirs])
    run_the_command()
    left = {path.relative_to(home).as_posix() for path in home.rglob("*") if path.is_file()}
    assert left == {*THEIRS, *theirs}


def test_models_in_another_folder_go_too(home, tmp_path, monkeypatch):
    monkeypatch.setenv("DECDEC_CACHE", str(tmp_path / "big"))
    fill(home, ["settings.toml"])
    fill(tmp_path / "big", ["models/m/.identity.json", "films/f"])
    run_the_command()
    assert [path.name for path in (tmp_path / "big").iterdir()] == ["films"]
    assert not (home / "settings.toml").exists()


def test_the_platform_s_folders_go_whole(tmp_path, monkeypatch):
    for name in ("DECDEC_HOME", "DECDEC_CACHE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("user_cache_path", "user_config_path", "user_data_path"):
        monkeypatch.setattr(f"platformdirs.{name}", lambda app, name=name: tmp_path / name / app)
    fill(locations.home(), ["models/m/a", "of a later version"])
    fill(locations.history_file().parent, ["history.db", "history.db-wal"])
    run_the_command()
    assert [path.name for path in tmp_path.rglob("*")] == ["user_cache_path", "user_data_path"]


def test_nothing_is_named_twice_and_the_program_is_this_one(home):
    fill(home, OURS)
    found = removal.kept_paths()
    assert len(found) == len(set(found))
    assert removal.removal()[0]["command"].endswith("-m pip uninstall decdec-chat")
    assert sys.executable in removal.removal()[0]["command"]
