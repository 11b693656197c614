"""The part of a text in which looked for words stand."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from app.history.words import Phrase, Span, spans
from app.text import one_line

# Characters before the first hit, and in all: more than any terminal shows in a line.
BEFORE, LENGTH = 24, 400


@dataclass(frozen=True, slots=True)
class Excerpt:
    """One line, safe to draw; `spans` are slices of it that hold what was looked for."""

    text: str
    spans: tuple[Span, ...]


def excerpt(text: str, wanted: Collection[Phrase]) -> Excerpt | None:
    """Around the first hit; None where the text has none."""
    line = one_line(text)
    found = spans(line, wanted)
    if not found:
        return None
    start = _start(line, found[0][0])
    cut = line[start : start + LENGTH]
    mark = "…" if start else ""
    shift = len(mark) - start
    kept = tuple((a + shift, b + shift) for a, b in found if b - start <= len(cut))
    return Excerpt(mark + cut, kept)


def _start(line: str, hit: int) -> int:
    """Where a word begins a little before the hit, or the hit itself in a text without blanks."""
    if hit <= BEFORE:
        return 0
    blank = line.find(" ", hit - BEFORE, hit)
    return hit if blank < 0 else blank + 1
