"""Nothing that drives a terminal gets through."""

import pytest

from app.text import neutralise, one_line


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
        ("é 東京 👩‍👩‍👧", "é 東京 👩‍👩‍👧"),
    ],
)
def test_neutralise(raw, safe):
    assert neutralise(raw) == safe


def test_one_line():
    assert one_line(" a\n\tb \x1b c ") == "a b ␛ c"
