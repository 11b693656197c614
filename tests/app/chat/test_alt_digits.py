"""Alt and a digit as a terminal sends it."""

import time

import pytest
from textual import _ansi_sequences, constants
from textual._xterm_parser import XTermParser

from app.chat.alt_digits import tell_alt_digits_apart


@pytest.fixture(autouse=True)
def restored(monkeypatch):
    """Textual's own table comes back after a test."""
    table = _ansi_sequences.ANSI_SEQUENCES_KEYS
    before = dict(table)
    yield
    table.clear()
    table.update(before)


def keys(sent):
    parser = XTermParser()
    events = list(parser.feed(sent))
    time.sleep(constants.ESCAPE_DELAY * 1.5)
    return [event.key for event in (*events, *parser.tick())]


@pytest.mark.parametrize(
    ("sent", "key"),
    [
        ("\x1b0", "alt+0"),
        ("\x1b4", "alt+4"),
        ("\x1b5", "alt+5"),
        ("\x1b[52;3u", "alt+4"),
        ("\x1bz", "alt+z"),
        ("4", "4"),
        ("¡", "inverted_exclamation_mark"),
        ("\x1b[1;5D", "ctrl+left"),
    ],
)
def test_escape_and_a_digit_is_alt_and_that_digit(sent, key):
    tell_alt_digits_apart()
    tell_alt_digits_apart()
    assert keys(sent) == [key]
