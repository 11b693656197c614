"""What a terminal sends and is sent: pastes, new lines, copies, sizes, no mouse, no colours."""

import base64
import re
import shlex

import pytest

from tests.app.conftest import MODEL, add_model

pytest.importorskip("fcntl", reason="this system has no pseudo terminals")
from app.clipboard import SAFE_BYTES
from tests.end_to_end import terminals
from tests.end_to_end.conftest import PROGRAM


@pytest.fixture
def start(start_in):
    """Start the program in a pseudo terminal, with a model."""
    begin = start_in(terminals.PtyTerminal)
    add_model(MODEL)
    return begin


def questions(screen):
    return [line.strip(" ▌") for line in screen.splitlines() if "▌" in line]


def copied(output):
    """What the terminal was asked to put on the clipboard, newest last."""
    return [base64.b64decode(coded).decode() for coded in re.findall(rb"\x1b\]52;c;([^\x07\x1b]*)", output)]


def test_a_paste_of_many_lines_is_one_message_and_new_lines_are_typed(start):
    terminal = start(replies=["One.", "Two."])
    terminal.wait("target")
    terminal.type("\x1b[200~first line\nsecond line\r\nthird line\x1b[201~")
    terminal.wait("third line", "0/2048")
    terminal.press("enter")
    assert questions(terminal.wait("One.", "tok/s"))[:3] == ["first line", "second line", "third line"]
    terminal.type("above")
    terminal.press("shift+enter")
    terminal.type("between")
    terminal.press("ctrl+j")
    terminal.type("below")
    terminal.press("enter")
    assert questions(terminal.wait("Two."))[3:6] == ["above", "between", "below"]


def test_a_copy_reaches_the_terminal_and_its_limit_is_told(start):
    small, large = "Short answer.", "long answer " * (SAFE_BYTES // 12)
    terminal = start(replies=[small, large], rate=0)
    terminal.wait("target")
    terminal.ask("one")
    terminal.wait("Short answer.", "tok/s")
    terminal.press("ctrl+y")
    terminal.wait("Sent 13 characters")
    assert copied(terminal.output) == [small]
    terminal.ask("two")
    terminal.wait("747 tokens", "ready")
    terminal.press("ctrl+y")
    terminal.wait("terminals", "/export")
    assert copied(terminal.output)[-1].strip() == large.strip()


def test_resizing_while_an_answer_is_written(start):
    terminal = start(rate=100)
    terminal.wait("target")
    terminal.ask("!long")
    terminal.wait("word9")
    for width, height, sign in (
        (20, 6, "Too small"),
        (300, 100, "target"),
        (30, 8, "writing"),
        (60, 20, "target"),
    ):
        terminal.resize(width, height)
        screen = terminal.wait(sign)
        assert max(map(len, screen.splitlines())) <= width
    terminal.press("escape")
    terminal.wait("stopped")


def test_without_colours_and_without_a_mouse(start):
    terminal = start(env={"NO_COLOR": "1"})
    terminal.wait("target")
    terminal.ask("capital?")
    terminal.wait("Paris", "tok/s")
    terminal.press("f8")
    terminal.wait("target 10 %")
    colours = re.findall(rb"[34]8;(?:5;(\d+)|2;(\d+);(\d+);(\d+))", terminal.output)
    assert colours
    for index, red, green, blue in colours:
        assert red == green == blue if red else int(index) in (0, 7, 8, 15, 16) or 231 <= int(index) <= 255


def test_a_screen_that_would_be_drawn_into_a_file_is_refused(start, tmp_path):
    line = f"{shlex.join(PROGRAM)} 2>{shlex.quote(str(tmp_path / 'log'))}"
    assert start(program=["sh", "-c", line]).exit_code() == 1
    assert (tmp_path / "log").read_text().startswith("The chat cannot be drawn: stderr is no terminal.")
