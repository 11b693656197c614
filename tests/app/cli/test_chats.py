"""`chats` from outside: what is printed, what is written, and the exit code."""

import contextlib
import json

import pytest
from click.testing import CliRunner

from app.cli.chats import chats
from app.history import History
from runtime import locations
from runtime.errors import DecdecError
from tests.app.history.conversations import said


@pytest.fixture(autouse=True)
def kept(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    one = said(("What is the capital of France?", "Paris."), id="aaaa1111x")
    two = said(("東京\x1b[31m", "晴れ"), title="Weather\x1b[2J", id="aaaa2222x")
    with contextlib.closing(History(locations.history_file())) as history:
        history.save(one, updated=1_700_000_000)
        history.save(two, updated=1_700_000_100)
    return one, two


def run(*arguments):
    """What is printed; DecdecError where the command line shows a sentence."""
    result = CliRunner().invoke(chats, arguments)
    if isinstance(result.exception, DecdecError):
        raise result.exception
    assert result.exit_code == 0, result.output
    assert "\x1b" not in result.output
    return result.output


def test_listing_and_searching():
    assert [line.split()[0] for line in run("list").splitlines()] == ["id", "aaaa2222", "aaaa1111"]
    assert "capital of France" in run("list", "paris", "capit")
    assert "Weather" not in run("list", "paris")
    document = json.loads(run("list", "--json", "--limit", "1"))
    assert document["total"] == 2
    assert [row["id"] for row in document["conversations"]] == ["aaaa2222x"]
    assert "No conversation holds" in run("list", "nothing")


def test_showing_takes_a_beginning_or_the_last():
    assert run("show", "aaaa1").startswith("# What is the capital of France?\n")
    assert "晴れ" in run("show")
    for name, why in [("aaaa", "2 begin so"), ("b", "none is called so"), ("\x1b", "none")]:
        with pytest.raises(DecdecError, match=why):
            run("show", name)


def test_export_and_import(tmp_path, kept):
    assert "a.md" in run("export", "aaaa1", "a.md")
    assert "Paris." in (tmp_path / "a.md").read_text(encoding="utf-8")
    run("export", "--all", "all.json")
    assert "2 imported" in run("import", "all.json")
    assert json.loads(run("list", "--json"))["total"] == 4
    with pytest.raises(DecdecError, match=r"\.json"):
        run("export", "--all", "all.md")
    with pytest.raises(DecdecError, match="holds no conversations"):
        run("import", "a.md")


def test_delete_and_restore():
    assert "is deleted" in run("delete", "aaaa1")
    assert json.loads(run("list", "--json"))["total"] == 1
    assert "is back" in run("restore")
    with pytest.raises(DecdecError, match="Nothing that was deleted"):
        run("restore")


def test_a_history_that_cannot_be_read_is_one_sentence():
    locations.history_file().write_bytes(b"garbage" * 1000)
    for journal in locations.history_file().parent.glob("history.db-*"):
        journal.unlink()
    with pytest.raises(DecdecError, match="damaged"):
        run("list")
    assert "No conversation is kept yet" in run("list")
