"""How streamed text reaches the screen: when to draw, what to draw again, and whether to scroll along."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass

from markdown_it import MarkdownIt

MIN_INTERVAL_S = 0.1
MAX_INTERVAL_S = 1.0
# Drawing may take this share of the time, so that keys stay quick while a long block streams.
DRAWING_SHARE = 0.25

# Only where blocks end matters here, so inline parsing is left out. Tables as in Rich's Markdown.
_LINE_END = re.compile("\r\n|\n|\r")
_blocks = MarkdownIt("commonmark").enable("table").disable(["inline", "text_join"])


@dataclass(slots=True)
class Pace:
    """Decides when to draw: at most ten times a second, less often when a drawing is slow."""

    interval_s: float = MIN_INTERVAL_S
    drawn_at: float = float("-inf")

    def due(self, now: float) -> bool:
        """Whether enough time has passed since the last drawing."""
        return now - self.drawn_at >= self.interval_s

    def drew(self, started: float, ended: float) -> None:
        """Record one drawing and adapt the interval to its cost."""
        self.drawn_at = ended
        wanted = (ended - started) / DRAWING_SHARE
        self.interval_s = min(max(wanted, MIN_INTERVAL_S), MAX_INTERVAL_S)


@dataclass(slots=True)
class BlockStream:
    """Splits growing Markdown into blocks that are settled and a tail that may still change.

    `push` the whole text so far; `settled` grows by the blocks finished since, `tail` is the rest. A block is
    finished when another top-level block has begun behind it, so only the tail is ever parsed again.
    """

    settled: int = 0
    tail: str = ""

    def push(self, text: str) -> list[str]:
        """Newly settled source, oldest first."""
        self.tail = text[self.settled :]
        cut = _last_block_start(self.tail)
        if not cut:
            return []
        done, self.tail = self.tail[:cut], self.tail[cut:]
        self.settled += cut
        return [done]


def _last_block_start(text: str) -> int:
    """Character offset where the last top-level block begins; 0 when there is only one."""
    starts = [token.map[0] for token in _blocks.parse(text) if token.level == 0 and token.map]
    if not starts or not starts[-1]:
        return 0
    # The parser's lines end at these only; str.splitlines knows more.
    ends = itertools.islice(_LINE_END.finditer(text), starts[-1] - 1, None)
    return next(ends).end()


@dataclass(slots=True)
class Follow:
    """Whether the view follows the newest text: scrolling up holds it, reaching the end follows again."""

    on: bool = True

    def scrolled(self, old: float, new: float, end: float) -> None:
        """The view moved from `old` to `new`; `end` is the largest possible value."""
        if new >= end - 1:
            self.on = True
        elif new < old:
            self.on = False
