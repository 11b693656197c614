"""The recorder: everything at once, never an exception, nothing lost to a kill."""

import contextlib
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from app.conversation import TurnState
from app.history import History, Recorder, database
from app.history.recorder import MAX_WAIT_S, QUICK_S, WritePace
from app.session import ChatSession
from runtime.protocol.events import Done, Failed, Loaded, Token
from tests.app.history.conversations import facts

ROOT = Path(__file__).resolve().parents[3]


class Desk:
    """A session that is recorded, and what it told."""

    def __init__(self, path):
        self.told = []
        self.now = 0.0
        self.history = History(path)
        self.recorder = Recorder(self.history, self.told.append, lambda: self.now)
        self.session = ChatSession("Be brief.", journal=self.recorder)
        self.session.load("a-model")
        self.session.push(Loaded("a-model", "low4", "cpu", 2048, 1))

    @property
    def conversation(self):
        return self.session.conversation

    def stored(self, id=""):
        with contextlib.closing(History(self.history.database.path)) as reader:
            return reader.load(id or self.conversation.id)

    def say(self, *pieces, end="stop"):
        for piece in pieces:
            self.session.push(Token(piece, 1))
        if end:
            text = "".join(pieces)
            self.session.push(Done("generate", {"text": text, "finish_reason": end}))


@pytest.fixture
def desk(tmp_path):
    made = Desk(tmp_path / "history.db")
    yield made
    made.recorder.close()


def test_an_empty_conversation_is_never_stored(desk):
    desk.session.tell_first("Be kind.")
    desk.session.retitle("Nothing yet")
    desk.session.new_chat()
    desk.recorder.close()
    assert not desk.history.database.path.exists()


def test_every_piece_is_there_before_it_can_be_drawn(desk):
    desk.session.ask("question")
    assert desk.stored().last.question == "question"
    for n, piece in enumerate(["Once", " upon ", "a ", "time"]):
        desk.session.push(Token(piece, n))
        assert desk.stored().last.answer == desk.conversation.last.answer
    desk.session.push(Done("generate", {"text": "Once upon a time", "finish_reason": "length"}))
    assert facts(desk.stored()) == facts(desk.conversation)
    desk.session.go_on()
    desk.session.push(Token(", far", 1))
    assert desk.stored().last.answer == "Once upon a time, far"
    desk.session.push(Done("generate", {"text": ", far away", "finish_reason": "stop"}))
    assert facts(desk.stored()) == facts(desk.conversation)
    with desk.history.database.reading() as connection:
        assert connection.execute("SELECT count(*) FROM pieces").fetchone()[0] == 0


def test_what_is_drawn_is_there_however_slow_the_disk_is(desk):
    desk.session.ask("question")
    desk.recorder._pace.due_at = float("inf")
    desk.session.push(Token("Once", 1))
    assert desk.stored().last.answer == ""
    desk.recorder.drawing(desk.conversation, desk.conversation.last)
    assert desk.stored().last.answer == "Once"
    desk.recorder.drawing(desk.conversation, desk.conversation.last)
    desk.say(" upon", end="stop")
    desk.recorder.drawing(desk.conversation, desk.conversation.last)
    with desk.history.database.reading() as connection:
        assert connection.execute("SELECT count(*) FROM pieces").fetchone()[0] == 0


def test_the_end_of_an_answer_waits_for_the_disk_and_its_pieces_do_not(desk):
    def synchronous():
        with desk.history.database.reading() as connection:
            return connection.execute("PRAGMA synchronous").fetchone()[0]

    statements = []
    desk.session.ask("question")
    with desk.history.database.reading() as connection:
        connection.set_trace_callback(statements.append)
    desk.say("Once", end="")
    assert (synchronous(), "PRAGMA synchronous = FULL" in statements) == (1, False)
    desk.session.push(Done("generate", {"text": "Once", "finish_reason": "stop"}))
    full, commit = statements.index("PRAGMA synchronous = FULL"), statements[::-1].index("COMMIT")
    assert full < len(statements) - 1 - commit


def test_everything_a_session_does_is_kept(desk):
    session = desk.session
    session.ask("one")
    desk.say("1")
    session.ask("two")
    desk.say("2", end="")
    session.push(Failed("generate", "It failed", "no memory"))
    session.edit(session.conversation.turns[1], "two, edited")
    desk.say("2b")
    session.regenerate(session.conversation.turns[0])
    desk.say("1b")
    session.show_variant(session.conversation.turns[0], -1)
    session.retitle("A title")
    session.tell_first("Be kind.")
    assert facts(desk.stored()) == facts(desk.conversation)
    session.delete(session.conversation.turns[1])
    assert facts(desk.stored()) == facts(desk.conversation)
    session.undo()
    assert facts(desk.stored()) == facts(desk.conversation)


def test_a_conversation_whose_turns_are_all_gone_is_gone_until_undone(desk):
    desk.session.ask("one")
    desk.say("1")
    desk.session.retitle("Title")
    desk.session.delete(desk.conversation.turns[0])
    assert desk.stored() is None
    desk.session.undo()
    assert facts(desk.stored()) == facts(desk.conversation)


def test_leaving_a_running_answer_keeps_it(desk):
    desk.session.ask("one")
    desk.say("partial", end="")
    left = desk.conversation
    desk.session.new_chat()
    assert desk.stored(left.id).last.answer == "partial"
    assert desk.stored(left.id).last.finish_reason == "stopped"


def test_trouble_is_told_once_and_all_is_written_when_it_is_over(desk, monkeypatch):
    monkeypatch.setattr(database, "BUSY_S", 0.0)
    desk.session.ask("one")
    desk.say("1")
    desk.history.close()
    path = desk.history.database.path
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        desk.session.ask("two")
        for _ in range(5):
            desk.session.push(Token("2", 1))
            desk.now += 2
        desk.session.retitle("Title")
        assert len(desk.told) == 1
        assert "another program" in desk.told[0]
        other.execute("COMMIT")
    assert desk.stored().turns[-1].question == "one"
    desk.now += 2
    desk.session.push(Token("2", 1))
    assert desk.stored().last.answer == "222222"
    assert desk.stored().title == "Title"
    desk.session.push(Token("2", 1))
    desk.session.push(Done("generate", {"finish_reason": "stop"}))
    assert facts(desk.stored()) == facts(desk.conversation)
    assert len(desk.told) == 1


def test_what_was_deleted_while_the_file_refused_is_deleted_later(desk, monkeypatch):
    monkeypatch.setattr(database, "BUSY_S", 0.0)
    desk.session.ask("one")
    desk.say("1")
    desk.session.ask("two")
    desk.say("2")
    desk.history.close()
    with contextlib.closing(sqlite3.connect(desk.history.database.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        desk.session.delete(desk.conversation.turns[1])
        assert len(desk.stored().turns) == 2
        other.execute("COMMIT")
    desk.recorder.close()
    assert facts(desk.stored()) == facts(desk.conversation)


def test_growing_answers_try_a_refusing_file_seldom(desk, monkeypatch):
    desk.session.ask("one")
    desk.say("1", end="")
    calls = []

    def refuse(*args):
        calls.append(args)
        raise sqlite3.OperationalError("disk I/O error")

    for name in ("grow", "save", "save_turn"):
        monkeypatch.setattr(desk.history, name, refuse)
    for _ in range(100):
        desk.now += 0.03
        desk.session.push(Token("x", 1))
    assert 2 <= len(calls) <= 6
    assert len(desk.told) == 1


@pytest.mark.parametrize("spoil", ["removed", "replaced", "newer", "folder"])
def test_whatever_happens_to_the_file_the_chat_goes_on(desk, spoil):
    desk.session.ask("one")
    desk.say("1")
    path = desk.history.database.path
    if spoil == "newer":
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA user_version = 999")
        desk.history.close()
    else:
        for each in path.parent.glob("history.db*"):
            each.unlink()
    if spoil == "replaced":
        path.write_bytes(b"not a database" * 1000)
    if spoil == "folder":
        path.mkdir()
    desk.session.ask("two")
    desk.say("2", "2")
    assert desk.conversation.last.answer == "22"
    assert len(desk.told) <= 2
    if spoil in ("removed", "replaced"):
        desk.session.ask("three")
        desk.say("3")
        assert facts(desk.stored()) == facts(desk.conversation)
    else:
        assert desk.told


def test_an_answer_that_begins_in_an_unwritable_file_is_written_when_it_ends(desk, monkeypatch):
    monkeypatch.setattr(database, "BUSY_S", 0.0)
    desk.session.ask("zero")
    desk.say("0")
    desk.session.new_chat()
    desk.history.close()
    with contextlib.closing(sqlite3.connect(desk.history.database.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        desk.session.ask("one")
        desk.say("1", "1", end="")
        other.execute("COMMIT")
    desk.session.push(Done("generate", {"finish_reason": "stop"}))
    assert facts(desk.stored()) == facts(desk.conversation)


@pytest.mark.parametrize(
    ("costs", "waits"),
    [
        ([QUICK_S / 2], 0.0),
        ([QUICK_S / 2, 10.0, QUICK_S / 2], 0.0),
        ([0.01, 0.01], 0.1),
        ([5.0, 5.0], MAX_WAIT_S),
    ],
)
def test_only_a_disk_that_is_slow_again_and_again_gets_larger_pieces(costs, waits):
    pace = WritePace()
    for cost in costs:
        pace.wrote(0.0, cost)
    assert pace.due_at - costs[-1] == pytest.approx(waits)


STREAM = """
import sys
from pathlib import Path
from app.history import History, Recorder
from app.session import ChatSession
from runtime.protocol.events import Loaded, Token
session = ChatSession(journal=Recorder(History(Path(sys.argv[1])), print))
session.load("m")
session.push(Loaded("m", "low4", "cpu", 2048, 1))
session.ask("a question")
print(session.conversation.id, flush=True)
for n in range(1_000_000):
    session.push(Token(f"{n} ", n))
    print(n, flush=True)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs a kill that nothing can catch")
def test_a_kill_in_the_middle_of_an_answer_keeps_all_that_was_shown(tmp_path):
    path = tmp_path / "history.db"
    program = subprocess.Popen(
        [sys.executable, "-c", STREAM, str(path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    id = program.stdout.readline().strip()
    shown = [program.stdout.readline() for _ in range(500)]
    program.kill()
    shown += program.stdout.read().splitlines()
    program.wait(30)
    with contextlib.closing(History(path)) as history:
        turn = history.load(id).last
        words = turn.answer.split()
        assert len(words) >= len(shown) >= 500
        assert words == [str(n) for n in range(len(words))]
        assert (turn.state, turn.finish_reason, turn.cut) == (TurnState.DONE, "interrupted", True)
        assert history.page('"497 498 499"').total == 1
