"""The file: made when it is needed, checked, set aside, shared."""

import contextlib
import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from app.history import History, database, schema
from runtime import locations
from runtime.errors import DecdecError
from tests.app.history.conversations import said

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "data" / "history.db"


@pytest.fixture
def history(path):
    with contextlib.closing(History(path)) as made:
        yield made


def names(path):
    return sorted(each.name for each in path.parent.iterdir())


def read_all(history):
    return [history.load(entry.id) for entry in history.page(limit=100).entries]


def test_where_it_lies(monkeypatch, tmp_path):
    monkeypatch.setenv("DECDEC_HOME", str(tmp_path))
    assert locations.history_file() == tmp_path / "history.db"
    monkeypatch.delenv("DECDEC_HOME")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert not locations.history_file().is_relative_to(tmp_path / "cache")
    assert "decdec-chat" in locations.history_file().parts


def test_nothing_is_made_before_the_first_write_and_then_for_its_owner_alone(history, path):
    history.page()
    assert History.open()[1] == ""
    assert not path.parent.exists()
    history.save(said(("q", "a")))
    if os.name == "posix":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_crash_of_the_machine_can_not_damage_it(history):
    history.save(said(("q", "a")))
    with history.database.reading() as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
        assert connection.execute("PRAGMA synchronous").fetchone()[0] == 1


def test_older_files_are_brought_up_in_order(history, path, monkeypatch):
    conversation = said(("q", "a"))
    history.save(conversation)
    history.close()
    steps = (
        ("ALTER TABLE conversations ADD COLUMN colour TEXT", "UPDATE conversations SET colour = 'red'"),
        ("UPDATE conversations SET colour = colour || 'dish'",),
    )
    monkeypatch.setattr(schema, "MIGRATIONS", schema.MIGRATIONS + steps)
    assert history.load(conversation.id).last.answer == "a"
    with history.database.reading() as connection:
        assert connection.execute("SELECT colour FROM conversations").fetchone()[0] == "reddish"
        assert connection.execute("PRAGMA user_version").fetchone()[0] == 3


def test_a_migration_that_fails_changes_nothing(history, path, monkeypatch):
    history.save(said(("q", "a")))
    history.close()
    broken = (("ALTER TABLE conversations ADD COLUMN colour TEXT", "NONSENSE"),)
    with monkeypatch.context() as patch:
        patch.setattr(schema, "MIGRATIONS", schema.MIGRATIONS + broken)
        with pytest.raises(DecdecError):
            history.page()
    assert history.page().total == 1


def test_a_newer_file_is_left_alone(home):
    path = locations.history_file()
    with contextlib.closing(History(path)) as history:
        history.save(said(("q", "a")))
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {len(schema.MIGRATIONS) + 1}")
    before = path.read_bytes()
    history, problem = History.open()
    assert "newer" in problem
    assert problem.count(".") <= 2
    with pytest.raises(DecdecError, match="newer"):
        history.save(said(("q", "a")))
    assert path.read_bytes() == before
    assert [name for name in names(path) if name.endswith(".bad")] == []


@pytest.mark.parametrize("content", [b"garbage " * 1000, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_damaged_file_is_set_aside_and_nothing_overwritten(history, path, content):
    path.parent.mkdir()
    path.write_bytes(content)
    (path.parent / "history-1.bad").write_bytes(b"older")
    with pytest.raises(DecdecError, match=r"history-2\.bad"):
        history.page()
    assert (path.parent / "history-1.bad").read_bytes() == b"older"
    assert (path.parent / "history-2.bad").read_bytes() == content
    history.save(said(("q", "a")))
    assert history.page().total == 1


def test_damage_within_a_file_is_found_when_it_is_met(history, path):
    for n in range(60):
        history.save(said((f"q{n}", "a" * 3000)))
    history.close()
    data = bytearray(path.read_bytes())
    data[8192:-8192] = b"\xff" * (len(data) - 16384)
    path.write_bytes(data)
    with pytest.raises(DecdecError, match=r"history-1\.bad"):
        read_all(history)
    history.save(said(("q", "a")))
    assert history.page().total == 1


def test_a_journal_without_its_file_is_not_played_into_a_new_one(history, path):
    history.save(said(("old", "a")))
    (path.parent / "kept").write_bytes((path.parent / "history.db-wal").read_bytes())
    history.close()
    path.unlink()
    (path.parent / "kept").rename(path.parent / "history.db-wal")
    history.save(said(("new", "a")))
    assert [entry.title for entry in history.page().entries] == ["new"]
    assert "history-1.bad-wal" in names(path)


def test_a_removed_file_is_told_and_made_again(history, path):
    history.save(said(("old", "a")))
    path.unlink()
    with pytest.raises(DecdecError, match="removed"):
        history.save(said(("new", "a")))
    history.save(said(("new", "a")))
    assert [entry.title for entry in history.page().entries] == ["new"]


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    history = History(tmp_path / "file" / "history.db")
    with pytest.raises(DecdecError, match="Conversations are not kept: ") as caught:
        history.save(said(("q", "a")))
    assert str(caught.value).count("\n") == 0


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        ("PRAGMA max_page_count = 1", r"the disk of .* is full \(.* free\)"),
        ("PRAGMA query_only = 1", "read-only"),
    ],
)
def test_why_it_cannot_be_written(history, spoil, reason):
    history.save(said(("q", "a")))
    with history.database.reading() as connection:
        connection.execute(spoil)
    with pytest.raises(DecdecError, match=reason):
        history.save(said(("q", "a" * 100_000)))
    assert history.page().total == 1


def test_another_program_that_writes_is_waited_for_and_then_told(history, path, monkeypatch):
    monkeypatch.setattr(database, "BUSY_S", 0.05)
    history.save(said(("q", "a")))
    history.close()
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(DecdecError, match="another program"):
            history.save(said(("q", "a")))
        assert history.page().total == 1
        other.execute("COMMIT")
    history.save(said(("q", "a")))
    assert history.page().total == 2


WRITER = """
import sys
from pathlib import Path
from app.history import History, database
from tests.app.history.conversations import said
database.BUSY_S = 60
history = History(Path(sys.argv[1]))
for n in range(25):
    conversation = said((f"{sys.argv[2]} {n}", "answer"))
    history.save(conversation)
    turn = conversation.ask("more")
    history.save_turn(conversation, turn)
    for k in range(5):
        turn.answer += "word "
        history.grow(conversation, turn, 5 * k)
    history.page("word")
history.close()
"""


def test_two_programs_that_begin_at_once_lose_nothing(path):
    programs = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), name], cwd=ROOT) for name in ("a", "b")
    ]
    assert [program.wait(120) for program in programs] == [0, 0]
    with contextlib.closing(History(path)) as history:
        entries = history.page(limit=100).entries
        assert len(entries) == 50
        assert all(history.load(entry.id).last.answer == "word " * 5 for entry in entries)
        with history.database.reading() as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
