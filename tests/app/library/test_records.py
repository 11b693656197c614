"""Unfinished pulls survive the program's end."""

import json
import os

import pytest

from app.library import records
from app.library.pulls import Pull, PullState
from runtime import locations


def test_kept_forgotten_and_found():
    for name in ("b", "a.1"):
        assert records.keep(Pull(name, f"owner/{name}")) == ""
    records.keep(Pull("b", "owner/b"))
    assert [(p.name, p.source, p.state) for p in records.unfinished()] == [
        ("a.1", "owner/a.1", PullState.PAUSED),
        ("b", "owner/b", PullState.PAUSED),
    ]
    records.forget(Pull("b", "owner/b"))
    records.forget(Pull("never", "x"))
    assert [p.name for p in records.unfinished()] == ["a.1"]


DEEP = b'{"name": "x", "source": "y", "z": ' + b"[" * 30_000 + b"]" * 30_000 + b"}"


@pytest.mark.parametrize(
    "content",
    [
        b"{",
        b"[]",
        b'{"name": "../x", "source": "y"}',
        b'{"name": "x"}',
        b"\xff\x00",
        b"",
        pytest.param(DEEP, id="deep"),
    ],
)
def test_files_that_are_none_are_passed_over(home, content):
    records.keep(Pull("good", "owner/good"))
    (locations.pulls() / "bad.json").write_bytes(content)
    assert [p.name for p in records.unfinished()] == ["good"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no pipes in folders")
def test_a_pipe_is_not_waited_for(home):
    records.keep(Pull("good", "owner/good"))
    os.mkfifo(locations.pulls() / "bad.json")
    assert [p.name for p in records.unfinished()] == ["good"]


def test_a_home_that_cannot_be_written_is_told(home):
    home.mkdir()
    locations.pulls().write_text("a file in the way")
    assert "will not know that m" in records.keep(Pull("m", "owner/m"))
    assert records.unfinished() == []


def test_what_is_kept_is_plain_json():
    records.keep(Pull("m", "owner/m"))
    assert json.loads((locations.pulls() / "m.json").read_text()) == {"name": "m", "source": "owner/m"}
