"""Nothing that drives a terminal gets through."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.text import MAX_INVISIBLE, Neutraliser, neutralise, one_line, safe_json, without_unsafe


@pytest.mark.parametrize(
    ("raw", "safe"),
    [
        ("plain\n\ttext", "plain\n\ttext"),
        ("a\r\nb", "a\nb"),
        ("\x1b[31mred", "␛[31mred"),
        ("\x1b]52;c;aGk=\x07", "␛]52;c;aGk=␇"),
        ("\x9b31m", "\ufffd31m"),
        ("over\rwrite", "over␍write"),
        ("del\x7f", "del␡"),
        ("evil\u202etxt.exe", "evil\ufffdtxt.exe"),
        ("é 東京 👩‍👩‍👧 नमस्ते", "é 東京 👩‍👩‍👧 नमस्ते"),
        ("line\u2028paragraph\u2029", "line\ufffdparagraph\ufffd"),
        ("half\ud83d", "half\ufffd"),
        ("a" + "\u0301" * 5000 + "b", "a" + "\u0301" * MAX_INVISIBLE + "\ufffdb"),
        ("\u200b\u200d\ufeff" * 11, "\u200b\u200d\ufeff" * 10 + "\ufffd"),
    ],
)
def test_neutralise(raw, safe):
    assert neutralise(raw) == safe


TEXT = st.text(alphabet="a\r\n\x1b\x9b\u0301\u200d\u202e\U0001f600", max_size=90)


@given(TEXT, st.integers(1, 9))
def test_pieces_are_neutralised_as_the_whole(text, step):
    pieces = Neutraliser()
    shown = "".join(pieces.push(text[at : at + step]) for at in range(0, len(text), step)) + pieces.finish()
    assert shown == neutralise(text)
    assert neutralise(shown) == shown


@given(st.text() | TEXT)
def test_json_keeps_its_meaning_without_what_drives_a_terminal(text):
    safe = safe_json(json.dumps({text: text}, ensure_ascii=False))
    assert json.loads(safe) == json.loads(json.dumps({text: text}))
    assert neutralise(safe) == safe
    assert neutralise(without_unsafe(text)) == without_unsafe(text)


def test_one_line():
    assert one_line(" a\n\tb \x1b c ") == "a b ␛ c"
