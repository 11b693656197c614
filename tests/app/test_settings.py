"""Settings survive, stay a person's own text, and what is wrong spoils nothing else."""

import json
import os
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from app import settings_file
from app.options import OPTIONS
from app.settings import FIELDS, Settings, checked
from runtime import locations
from runtime.protocol.commands import Sampling

FULL = Settings(
    "m",
    "Be\nbrief.",
    7.5,
    "decdec-light",
    ("a",),
    4096,
    False,
    8,
    Sampling(0.3, 0.8, 40, 0.1, 1.2, 7),
    300,
    {"Short one": 'Say "less".\n\\ and\ttabs'},
    12.5,
    ("first",),
    False,
    {"stop": "f11", "theme": "f12"},
    "cuda:1",
    "http://mirror.example:8080/hub",
    "/elsewhere",
    "awq3",
    True,
)


def write(text):
    path = locations.settings_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def changed(settings, **fields):
    return msgspec.structs.replace(settings, **fields)


def test_round_trip_of_every_field():
    assert all(getattr(FULL, field.name) != getattr(Settings(), field.name) for field in FIELDS)
    assert settings_file.keep(Settings(), FULL) == ""
    assert settings_file.load() == (FULL, "")


def test_nothing_there_is_fine_and_nothing_is_written():
    assert settings_file.load() == (Settings(), "")
    assert not locations.settings_file().exists()


def test_a_new_file_explains_every_field_and_sets_none():
    text = settings_file.template()
    assert checked(tomllib.loads(text)) == (Settings(), [])
    for option in OPTIONS:
        assert option.help.split()[0] in text
        assert f"# {option.key} = " in text or f"[{option.key}]" in text
    assert {field.name for field in FIELDS} == {option.name.split(".")[0] for option in OPTIONS}


def test_every_line_of_a_new_file_may_be_taken_in():
    lines = settings_file.template().splitlines()
    examples = ("Name =", "regenerate =")
    lines = [line for line in lines if not any(example in line for example in examples)]
    text = "\n".join(line.removeprefix("# ") if " = " in line else line for line in lines)
    settings, problems = checked(tomllib.loads(text))
    assert problems == []
    assert settings.sampling == Sampling(0.2, 0.9, 40, 0.05, 1.1, 1)
    assert settings.device == "cuda:0"


def test_going_back_to_what_is_usual_gives_the_file_of_before():
    settings_file.keep(Settings(), Settings(theme="nord", sampling=Sampling(0.9), context=99))
    settings_file.keep(Settings(theme="nord", sampling=Sampling(0.9), context=99), Settings())
    assert locations.settings_file().read_text() == settings_file.template()


def test_comments_order_and_unknown_keys_stay():
    path = write('# mine\nnewer = 1\ntheme = "nord" # the blue one\n\n[sampling]\ntop_p = 0.5\n# end\n')
    settings, problem = settings_file.load()
    assert "newer" in problem
    assert settings_file.keep(settings, changed(settings, theme="decdec-light", kv_bits=8)) == ""
    text = path.read_text()
    assert '# mine\nnewer = 1\ntheme = "decdec-light" # the blue one\n' in text
    assert "[sampling]\ntop_p = 0.5\n# end\n" in text
    assert tomllib.loads(text)["kv_bits"] == 8


def test_a_hand_edit_and_another_chat_are_not_lost():
    mine = theirs = settings_file.load()[0]
    settings_file.keep(mine, mine := changed(mine, theme="nord", hints=("a",), keys={"stop": "f11"}))
    settings_file.keep(theirs, theirs := changed(theirs, kv_bits=8, hints=("b",), keys={"theme": "f12"}))
    path = locations.settings_file()
    path.write_text(path.read_text().replace("# context = 4096", "context = 2048"))
    settings_file.keep(mine, changed(mine, theme="gruvbox", hints=()))
    found, problem = settings_file.load()
    assert problem == ""
    assert (found.theme, found.kv_bits, found.context, found.hints) == ("gruvbox", 8, 2048, ("b",))
    assert found.keys == {"stop": "f11", "theme": "f12"}


def test_many_writers_at_once_lose_nothing():
    def keep(index):
        return settings_file.keep(Settings(), Settings(system_prompts={f"p{index}": "x"}))

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(keep, range(12))) == {""}
    assert set(settings_file.load()[0].system_prompts) == {f"p{i}" for i in range(12)}


WRONG = [
    ("slowdown_pct = 900", "slowdown_pct", "between 0 and 20"),
    ("slowdown_pct = nan", "slowdown_pct", "between 0 and 20"),
    ("model = 3", "model", "must be text in quotes, not a whole number"),
    ("kv_bits = 4", "kv_bits", "8 or 16"),
    ("context = 1", "context", "at least 2"),
    ('context = "many"', "context", "must be a whole number, not text"),
    ('device = "tpu"', "device", "cuda:N"),
    ('hub_endpoint = "ftp://x"', "hub_endpoint", "https://"),
    ('cache_folder = "here"', "cache_folder", "whole path"),
    ("max_tokens = 0", "max_tokens", "between 1"),
    ("auto_floor = -1", "auto_floor", "between 0"),
    ("sampling.seed = -1", "sampling.seed", "between 0"),
    ("sampling.top_p = 1.5", "sampling.top_p", "between 0 and 1"),
    ("keys = 3", "keys", "must be a table"),
    ("keys.stop = 3", "keys.stop", "must be text"),
    ("untuned = [1]", "untuned", "must be text"),
]


@pytest.mark.parametrize(("line", "name", "reason"), WRONG, ids=[line for line, _, _ in WRONG])
def test_only_a_wrong_value_falls_back(line, name, reason):
    keys = "" if line == "keys = 3" else 'keys.theme = "f12"'
    path = write(f'theme = "nord"\nsampling.temperature = 0.5\n{keys}\n{line}\n')
    settings, problem = settings_file.load()
    assert (settings.theme, settings.sampling.temperature) == ("nord", 0.5)
    assert getattr(settings, name.split(".")[0]) in (
        getattr(Settings(), name.split(".")[0]),
        Sampling(0.5),
        {"theme": "f12"},
    )
    assert f"{name} in the settings is not used" in problem
    assert reason in problem
    assert path.exists()


@pytest.mark.parametrize("content", [b"{", b"\xff\xfe", b"a = \x00", b"[x\n", b"a = 1\na = 2\n"])
def test_a_file_that_is_no_toml_is_set_aside(content):
    for suffix in (".bad", ".bad1"):
        path = write("")
        path.write_bytes(content)
        loaded, problem = settings_file.load()
        assert loaded == Settings()
        assert "damaged" in problem
        assert path.with_suffix(suffix).read_bytes() == content
        assert not path.exists()


def test_a_file_damaged_while_the_chat_runs_is_set_aside_and_everything_is_kept():
    settings_file.keep(Settings(), FULL)
    path = write("theme = ")
    trouble = settings_file.keep(FULL, changed(FULL, theme="nord"))
    assert "damaged" in trouble
    assert path.with_suffix(".bad").read_text() == "theme = "
    assert settings_file.load() == (changed(FULL, theme="nord"), "")


def test_json_of_an_earlier_version_is_taken_over_once():
    old = locations.old_settings_file()
    old.parent.mkdir(parents=True)
    old.write_text(json.dumps({"model": "m", "kv_bits": 8, "slowdown_pct": 700, "untuned": ["x"]}))
    settings, problem = settings_file.load()
    assert settings == Settings("m", untuned=("x",), kv_bits=8)
    assert "slowdown_pct" in problem
    assert not old.exists()
    assert settings_file.load() == (settings, "")


def test_damaged_json_of_an_earlier_version():
    old = locations.old_settings_file()
    old.parent.mkdir(parents=True)
    old.write_text("{")
    assert "damaged" in settings_file.load()[1]
    assert settings_file.load() == (Settings(), "")


def test_a_home_that_cannot_be_written_is_told(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("DECDEC_HOME", str(tmp_path / "file"))
    assert "could not be saved" in settings_file.keep(Settings(), Settings("m"))


@pytest.mark.skipif(sys.platform == "win32", reason="links and modes of POSIX")
def test_a_link_stays_a_link_and_a_mode_stays(tmp_path):
    real = tmp_path / "dotfiles" / "decdec.toml"
    real.parent.mkdir()
    real.write_text('theme = "nord"\n')
    real.chmod(0o640)
    path = locations.settings_file()
    path.parent.mkdir(parents=True)
    path.symlink_to(real)
    settings_file.keep(Settings(), Settings("m"))
    assert path.is_symlink()
    assert tomllib.loads(real.read_text()) == {"theme": "nord", "model": "m"}
    assert os.stat(real).st_mode & 0o777 == 0o640


def test_without_a_home_settings_lie_in_the_platform_s_folder(monkeypatch):
    monkeypatch.delenv("DECDEC_HOME")
    monkeypatch.setenv("XDG_CONFIG_HOME", "/config")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    if sys.platform.startswith("linux"):
        assert str(locations.settings_file()) == "/config/decdec-chat/settings.toml"
        assert str(locations.home()) == "/cache/decdec-chat"
    monkeypatch.setenv("DECDEC_CACHE", "/big")
    assert locations.models() == locations.home() / "models"
    assert locations.home().name == "big"
