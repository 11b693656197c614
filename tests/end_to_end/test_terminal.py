"""The program as a person has it: in a terminal, with keys, from the first start to the end."""

import os
import shutil
import signal
import time
from pathlib import Path

import psutil
import pytest

from tests.app.conftest import MODEL, add_model

pytest.importorskip("fcntl", reason="this system has no pseudo terminals")
from tests.end_to_end import terminals

KINDS = {"pty": terminals.PtyTerminal, "tmux": terminals.TmuxTerminal}


@pytest.fixture(params=KINDS)
def start(request, start_in):
    """Start the program."""
    if request.param == "tmux" and not shutil.which("tmux"):
        pytest.skip("tmux is not installed")
    return start_in(KINDS[request.param])


def test_from_the_first_start_to_an_answer_and_out(start):
    terminal = start()
    terminal.wait("This machine")
    terminal.press("enter")
    terminal.wait("Choose a model", "SmolLM2 135M")
    terminal.press("enter")
    terminal.wait_for(lambda screen: "target" in screen or "Enter begins the chat" in screen, "the chat")
    if "target" not in "\n".join(terminal.screen()):
        terminal.press("enter")
    terminal.wait("target", "Ask anything")
    terminal.ask("capital?")
    terminal.wait("Paris", "print('Paris')", "tok/s")
    terminal.press("ctrl+q")
    terminal.wait_end()


def test_a_chat_with_slider_variants_history_and_its_return_after_a_kill(start):
    add_model(MODEL)
    terminal = start()
    terminal.wait("target 5 %")
    terminal.press("f8")
    terminal.wait("target 10 %")
    terminal.ask("capital?")
    terminal.wait("Paris", "at 10 %")
    terminal.press("ctrl+r")
    terminal.wait("Second answer.", "variant 2 of 2")
    terminal.ask("!long")
    terminal.wait("word30")
    os.kill(terminal.pid, signal.SIGKILL)
    again = start()
    again.wait("target 10 %")
    again.press("f3")
    again.wait("capital?")
    again.press("enter")
    again.wait("word30", "interrupted")
    again.press("ctrl+q")
    again.wait_end()


def test_escape_stops_at_once_and_no_process_stays(start):
    add_model(MODEL)
    terminal = start()
    terminal.wait("target")
    terminal.ask("!long")
    terminal.wait("word5")
    worker = psutil.Process(terminal.pid).children(recursive=True)
    assert worker
    terminal.press("escape")
    terminal.wait("stopped")
    terminal.press("ctrl+c", "ctrl+c")
    terminal.wait_end()
    assert not [each for each in worker if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.parametrize("size", [(60, 20), (200, 50)])
def test_small_and_large_terminals(start, size):
    add_model(MODEL)
    terminal = start(size=size)
    terminal.wait("target")
    terminal.ask("capital?")
    screen = terminal.wait("Paris", "tok/s")
    assert max(map(len, screen.splitlines())) <= size[0]
    terminal.press("f1")
    terminal.wait("Keys and commands")
    terminal.press("escape")
    terminal.wait("target")


def test_a_crash_of_the_engine_is_a_sentence_and_the_chat_goes_on(start):
    add_model(MODEL)
    terminal = start()
    terminal.wait("target")
    terminal.ask("!crash")
    terminal.wait("engine's process ended")
    end = time.monotonic() + 20
    while "capital of France" not in "\n".join(terminal.screen()) and time.monotonic() < end:
        terminal.type("capital?")
        terminal.press("enter")
        time.sleep(1.0)
    terminal.wait("Paris")


def test_the_log_of_a_program_that_ended_well_holds_no_traceback(start, tmp_path):
    add_model(MODEL)
    terminal = start()
    terminal.wait("target")
    terminal.press("ctrl+q")
    terminal.wait_end()
    for log in Path(tmp_path / "home" / "logs").glob("*.log"):
        assert "Traceback" not in log.read_text(encoding="utf-8"), log
