"""Standard streams that nothing can drive a terminal through, whatever a command prints."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any, TextIO

from app.text import neutralise


class SafeStream:
    """A text stream in front of `plain`: every text is neutralised but for a carriage return it begins with,
    by which progress rewrites its line.

    Rich, which draws the last words of a chat, knows `rich_proxied_file` and writes its own codes there.
    """

    def __init__(self, plain: TextIO) -> None:
        self.plain = self.rich_proxied_file = plain

    def write(self, text: str) -> int:
        """Write all of it; the number of characters given."""
        rest = text.removeprefix("\r")
        self.plain.write(text[: len(text) - len(rest)] + neutralise(rest))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write them one after the other."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.plain, name)


def protect() -> None:
    """Put safe streams in the place of stdout and stderr."""
    sys.stdout, sys.stderr = SafeStream(sys.stdout), SafeStream(sys.stderr)


def for_an_answer() -> TextIO:
    """Where a model's words go: a terminal gets them neutralised, a file or another program as they are."""
    return sys.stdout if sys.stdout.isatty() else getattr(sys.stdout, "plain", sys.stdout)
