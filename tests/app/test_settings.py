"""Settings survive, and damage is set aside."""

import pytest

from app import settings
from app.settings import Settings
from runtime import locations


def test_round_trip():
    wanted = Settings("m", "Be brief.", 7.5, "decdec-light", ("a",), 4096, False, 8)
    assert settings.save(wanted) == ""
    assert settings.load() == (wanted, "")


def test_nothing_there_is_fine():
    assert settings.load() == (Settings(), "")


DAMAGED = [b"{", b"\xff\xfe", b'{"slowdown_pct": 900}', b'{"model": 3}', b'{"kv_bits": 4}', b'{"context": 1}']


@pytest.mark.parametrize("content", DAMAGED)
def test_damaged_settings_are_set_aside(content):
    path = locations.settings_file()
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    loaded, problem = settings.load()
    assert loaded == Settings()
    assert "damaged" in problem
    assert path.with_suffix(".bad").read_bytes() == content
    assert not path.exists()


def test_a_home_that_cannot_be_written_is_told(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("DECDEC_HOME", str(tmp_path / "file"))
    assert "could not be saved" in settings.save(Settings("m"))
