"""Text from a model or a file on its way to a terminal."""

from __future__ import annotations

import re

# C0 without tab and newline, DEL, C1, and the characters that re-order text.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_PICTURES = 0x2400


def neutralise(text: str) -> str:
    """The text with every character that could drive a terminal made visible.

    Control characters become their Unicode pictures (ESC is U+241B), the rest U+FFFD; CR LF becomes LF.
    """
    return _UNSAFE.sub(_visible, text.replace("\r\n", "\n"))


def _visible(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(_PICTURES + code)
    return "\u2421" if code == 0x7F else "\ufffd"


def one_line(text: str) -> str:
    """Neutralised, with all white space runs as one blank."""
    return " ".join(neutralise(text).split())
