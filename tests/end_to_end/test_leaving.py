"""However the program ends: the terminal is as it was, nothing goes on running, nobody sees a traceback."""

import os
import re
import signal
import sys
import time

import psutil
import pytest

from tests.app.conftest import MODEL, add_model

pytest.importorskip("fcntl", reason="this system has no pseudo terminals")
from tests.end_to_end import terminals

# Switched on for the program and off behind it: the other screen, the mouse, pastes in brackets.
MODES = ("1049", "1000", "1003", "1006", "2004")


@pytest.fixture
def start(start_in):
    """Start the program in a pseudo terminal."""
    return start_in(terminals.PtyTerminal)


def given_back(output):
    """Whether the last word about every mode is the usual one, and the cursor is there."""
    last = dict(re.findall(r"\x1b\[\?(\d+)([hl])", output.decode("utf-8", "replace")))
    assert last.keys() > {*MODES, "25"}
    return {mode: last[mode] for mode in MODES} == dict.fromkeys(MODES, "l") and last["25"] == "h"


def alive(processes):
    return [each for each in processes if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]


def gone(processes, seconds=15.0):
    end = time.monotonic() + seconds
    while alive(processes) and time.monotonic() < end:
        time.sleep(0.05)
    return not alive(processes)


def leave(terminal, how):
    if how == "/quit":
        terminal.ask("/quit")
    elif how == "SIGTERM":
        os.kill(terminal.pid, signal.SIGTERM)
    else:
        terminal.press(*how.split())


@pytest.mark.parametrize(
    ("how", "code"),
    [("ctrl+q", 0), ("ctrl+d", 0), ("ctrl+c ctrl+c", 0), ("/quit", 0), ("SIGTERM", 128 + signal.SIGTERM)],
)
def test_the_terminal_is_given_back(start, how, code):
    add_model(MODEL)
    terminal = start()
    terminal.wait("target")
    children = psutil.Process(terminal.pid).children(recursive=True)
    assert children
    assert not given_back(terminal.output)
    leave(terminal, how)
    assert terminal.exit_code() == code
    assert given_back(terminal.output)
    assert gone(children)


def test_a_failure_nobody_foresaw_is_one_sentence_and_a_log(start, tmp_path):
    add_model(MODEL)
    broken = (
        "from app.chat.screens.chat import ChatScreen; from app.cli.main import main\n"
        "ChatScreen.action_keys = lambda self: {}['\\x1b[31mkey']\nmain()"
    )
    terminal = start(program=[sys.executable, "-c", broken])
    terminal.wait("target")
    children = psutil.Process(terminal.pid).children(recursive=True)
    terminal.press("f1")
    assert terminal.exit_code() == 1
    assert given_back(terminal.output)
    left = terminal.output.rpartition(b"\x1b[?1049l")[2].decode()
    told = " ".join(re.sub(r"\x1b\[[?<>\d;]*[a-z]", "", left).split())
    assert told.startswith("An unexpected error: KeyError")
    assert "Traceback" not in told
    assert "\x1b" not in told
    assert "Traceback" in (tmp_path / "home" / "logs" / "decdec-chat.log").read_text()
    assert gone(children)


def test_nothing_outlives_a_kill(start):
    add_model(MODEL)
    terminal = start(rate=50)
    terminal.wait("target")
    terminal.ask("!long")
    terminal.wait("word5")
    children = psutil.Process(terminal.pid).children(recursive=True)
    os.kill(terminal.pid, signal.SIGKILL)
    assert terminal.exit_code() == -signal.SIGKILL
    assert children
    assert gone(children)


def test_nothing_outlives_a_terminal_that_was_closed(start):
    add_model(MODEL)
    terminal = start()
    terminal.wait("target")
    family = [psutil.Process(terminal.pid), *psutil.Process(terminal.pid).children(recursive=True)]
    terminal.hang_up()
    assert gone(family)
