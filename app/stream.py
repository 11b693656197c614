"""How streamed text reaches the screen: when to draw, what to draw again, and whether to scroll along."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from markdown_it.token import Token

from app.markdown_rules import block_parser

MIN_INTERVAL_S = 0.1
MAX_INTERVAL_S = 1.0
# Drawing may take this share of the time, so that keys stay quick while a long block streams.
DRAWING_SHARE = 0.25
# How much of a long fence or list is settled at once.
PART_LINES, PART_ITEMS = 40, 20

_LINE_END = re.compile("\r\n|\n|\r")
_blocks = block_parser()


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


@dataclass(frozen=True, slots=True)
class Settled:
    """Source that will not change. `joined`: what follows belongs to the same block, without a gap."""

    source: str
    joined: bool = False


@dataclass(slots=True)
class BlockStream:
    """Splits growing Markdown into blocks that are settled and a tail that may still change.

    `push` the whole text so far; `settled` counts the characters of it that are done, `tail` is the rest. A
    block is finished when another top-level block has begun behind it. Of a long list or a long fence the
    beginning is settled earlier, so that only little is ever parsed and drawn again: as a list of its own,
    and as a fence of its own, whose opening line then stands before the tail too.
    """

    settled: int = 0
    tail: str = ""
    _fence: str = ""

    def push(self, text: str) -> list[Settled]:
        """Newly settled source, oldest first."""
        self.tail = self._fence + text[self.settled :]
        tokens = _blocks.parse(self.tail)
        done = []
        if cut := _last_block_start(self.tail, tokens):
            done.append(Settled(self.tail[:cut]))
            self._advance(cut, "")
            tokens = _blocks.parse(self.tail)
        if part := _beginning(self.tail, tokens):
            done.append(Settled(self.tail[: part.end] + part.closing, joined=True))
            self._advance(part.end, part.opening)
        return done

    def _advance(self, cut: int, fence: str) -> None:
        self.settled += cut - len(self._fence)
        self.tail, self._fence = fence + self.tail[cut:], fence


@dataclass(frozen=True, slots=True)
class _Part:
    """The beginning of a block up to `end`; a fence is closed behind it and opened again."""

    end: int
    opening: str = ""
    closing: str = ""


def _beginning(text: str, tokens: Sequence[Token]) -> _Part | None:
    """What can be settled of the only top-level block of a text, if it is a long list or a long fence."""
    first = next((token for token in tokens if token.level == 0 and token.map), None)
    if first is None:
        return None
    if first.type == "fence" and first.map and first.map[1] - first.map[0] > 2 * PART_LINES:
        at = first.map[0]
        opening = text[_line(text, at) : _line(text, at + 1)]
        return _Part(_line(text, at + 1 + PART_LINES), opening, first.markup + "\n")
    if first.type in ("bullet_list_open", "ordered_list_open"):
        items = [
            token.map[0]
            for token in tokens
            if token.type == "list_item_open" and token.level == 1 and token.map
        ]
        if len(items) > 2 * PART_ITEMS:
            return _Part(_line(text, items[PART_ITEMS]))
    return None


def _last_block_start(text: str, tokens: Sequence[Token]) -> int:
    """Character offset where the last top-level block begins; 0 when there is only one."""
    starts = [token.map[0] for token in tokens if token.level == 0 and token.map]
    return _line(text, starts[-1]) if starts else 0


def _line(text: str, number: int) -> int:
    """Character offset of a line by the parser's count."""
    if not number:
        return 0
    # The parser's lines end at these only; str.splitlines knows more.
    return next(itertools.islice(_LINE_END.finditer(text), number - 1, None)).end()


@dataclass(slots=True)
class Follow:
    """Whether the view follows the newest text: scrolling up holds it, reaching the end follows again."""

    on: bool = True

    def scrolled(self, old: float, new: float, end: float) -> None:
        """The view moved from `old` to `new`; `end` is the largest possible value."""
        if new >= end or (new > old and new >= end - 1):
            self.on = True
        elif new < old:
            self.on = False
