"""Text from a model, a file, a hub or a server on its way to a terminal."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

# C0 without tab and newline, DEL, C1, what ends a line or a paragraph elsewhere, what re-orders text, and
# halves of characters, which no stream can write.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_PICTURES = 0x2400
# Marks on one letter, joiners and the like; Unicode's own limit for streams (UAX 15), and far more than any
# language takes. Terminals and this program would spend their time on one cell.
MAX_INVISIBLE = 30


class Neutraliser:
    """Neutralises text that comes in pieces: `push` them, then `finish`; joined it is `neutralise` of all."""

    def __init__(self) -> None:
        self._held, self._run = "", 0

    def push(self, text: str) -> str:
        """What is certain of the text so far: a carriage return waits for what follows."""
        text = self._held + text
        self._held = "\r" if text.endswith("\r") else ""
        return self._safe(text.removesuffix(self._held))

    def finish(self) -> str:
        """What was held."""
        held, self._held = self._held, ""
        return self._safe(held)

    def _safe(self, text: str) -> str:
        text = _UNSAFE.sub(_visible, text.replace("\r\n", "\n"))
        if text.isascii():
            self._run = 0 if text else self._run
            return text
        begun, self._run = self._run, 0

        def cut(match: re.Match[str]) -> str:
            before = begun if match.start() == 0 else 0
            after = before + len(match[0])
            self._run = after if match.end() == len(text) else 0
            kept = match[0][: max(0, MAX_INVISIBLE - before)]
            return f"{kept}\ufffd" if before <= MAX_INVISIBLE < after else kept

        limited: str = _invisible().sub(cut, text)
        return limited


def neutralise(text: str) -> str:
    """The text with every character that could drive a terminal made visible.

    Control characters become their Unicode pictures (ESC is U+241B), the rest U+FFFD, and so does what goes
    beyond MAX_INVISIBLE characters without a width of their own; CR LF becomes LF.
    """
    whole = Neutraliser()
    return whole.push(text) + whole.finish()


def one_line(text: str) -> str:
    """Neutralised, with all white space runs as one blank."""
    return " ".join(neutralise(text).split())


def safe_json(text: str) -> str:
    """A JSON text of the same meaning, in which what `neutralise` would change is written as escapes."""

    def escaped(run: re.Match[str]) -> str:
        units = run[0].encode("utf-16-be", "surrogatepass")
        return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))

    text = _UNSAFE.sub(escaped, text)
    if text.isascii():
        return text
    return str(_invisible().sub(lambda run: escaped(run) if len(run[0]) > MAX_INVISIBLE else run[0], text))


def without_unsafe(text: str) -> str:
    """The text without what `neutralise` would change, for where every cell is counted already."""
    text = _UNSAFE.sub("", text)
    if text.isascii():
        return text
    return str(_invisible().sub(lambda run: run[0][:MAX_INVISIBLE], text))


def _visible(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(_PICTURES + code)
    return "\u2421" if code == 0x7F else "\ufffd"


@cache
def _invisible() -> Any:
    """Runs of characters without a width; the library takes a moment, and plain text needs none of it."""
    import regex

    return regex.compile(r"[\p{M}\p{Cf}\u115f-\u11ff]+")
