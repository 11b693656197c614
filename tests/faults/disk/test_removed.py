"""The folder goes while it is used: one sentence, the chat goes on, and what was typed is kept again."""

import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from runtime.client import process
from tests.app.conftest import MODEL, add_model

pytest.importorskip("fcntl", reason="this system has no pseudo terminals")
from tests.end_to_end import terminals
from tests.end_to_end.conftest import start_in

__all__ = ["start_in"]
CUT = """
import mmap, os, sys
with open(sys.argv[1], "wb+") as file:
    file.write(b"x" * 100_000)
    file.flush()
    weights = mmap.mmap(file.fileno(), 0)
    os.truncate(sys.argv[1], 10)
    print(weights[50_000])
"""


@pytest.fixture
def chat(start_in, tmp_path):
    """A chat that has answered once; its home."""
    start = start_in(terminals.PtyTerminal)
    add_model(MODEL)
    terminal = start(size=(200, 40))
    terminal.wait("target")
    terminal.ask("capital?")
    terminal.wait("Paris")
    return terminal, tmp_path / "home"


def kept(home):
    """Questions and answers in the file."""
    with closing(sqlite3.connect(home / "history.db")) as connection:
        return connection.execute("SELECT question, answer FROM texts ORDER BY turn").fetchall()


def leave(terminal):
    terminal.press("ctrl+q")
    assert terminal.exit_code() == 0


def test_a_home_that_is_removed_beside_the_chat_is_told_and_begun_anew(chat, tmp_path):
    terminal, home = chat
    # In one step, while the program may be writing into it.
    home.rename(tmp_path / "away")
    terminal.ask("are you there?")
    terminal.wait("Second answer.", "Conversations are not kept", "was removed")
    terminal.press("f2")
    terminal.wait("none prepared yet")
    terminal.press("escape")
    leave(terminal)
    assert [question for question, _ in kept(home)] == ["capital?", "are you there?"]
    assert kept(home)[1][1] == "Second answer."


def test_another_history_in_the_place_of_the_chat_s_own_gets_what_was_typed(chat, tmp_path):
    terminal, home = chat
    for part in home.glob("history.db*"):
        part.rename(tmp_path / part.name)
    shutil.copy(tmp_path / "history.db", home / "history.db")
    terminal.ask("are you there?")
    terminal.wait("Second answer.", "Conversations are not kept", "was removed")
    leave(terminal)
    assert [question for question, _ in kept(home)] == ["capital?", "are you there?"]


@pytest.mark.skipif(sys.platform != "linux", reason="the signal of Linux")
def test_weights_that_become_shorter_are_a_sentence_that_says_so(tmp_path):
    done = subprocess.run([sys.executable, "-c", CUT, str(tmp_path / "weights")], capture_output=True)
    sentence = process.death(done.returncode).why
    assert sentence == "it was ended by SIGBUS, most likely because a file of the model became shorter, " + (
        "or its disk went away"
    )
    assert "memory ran out" in process.death(-9).why
    assert process.death(3).why == "it exited with code 3"
    assert Path(tmp_path / "weights").stat().st_size == 10
