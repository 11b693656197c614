"""Where a position lies on a track of cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.slider.position import DETENTS, LOSSLESS, MAX_SLOWDOWN_PCT, Position


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps percent to cells. The scale is the square root: detents lie apart, and small values get room.

    `cells`: width of the track; with `lossless` the last `gap` cells hold that stop.
    """

    cells: int
    lossless: bool = False

    @property
    def gap(self) -> int:
        """Cells behind 20 up to the lossless stop, it included; room lets its name stand apart."""
        if self.cells >= 70:
            return 16
        return 14 if self.cells >= 40 else 4

    @property
    def length(self) -> int:
        """Cells of the continuous part, at least 2."""
        return max(2, self.cells - (self.gap if self.lossless else 0))

    def cell(self, position: Position) -> int:
        """The thumb's cell."""
        if position.lossless:
            return self.cells - 1
        return round((position.pct / MAX_SLOWDOWN_PCT) ** 0.5 * (self.length - 1))

    def at(self, cell: int) -> Position:
        """The position under a cell; a cell beside a detent snaps to it."""
        if self.lossless and cell >= self.length + 1:
            return LOSSLESS
        cell = min(max(cell, 0), self.length - 1)
        for detent in DETENTS:
            if abs(self.cell(Position(detent)) - cell) <= (1 if self.length >= 30 else 0):
                return Position(detent)
        return Position(round((cell / (self.length - 1)) ** 2 * MAX_SLOWDOWN_PCT, 1))

    def labels(self, texts: Sequence[str]) -> str:
        """A line with one text centred below each detent; those that would collide are left out."""
        line = [" "] * self.cells
        for detent, text in zip(DETENTS, texts, strict=True):
            start = min(max(self.cell(Position(detent)) - len(text) // 2, 0), self.cells - len(text))
            if start >= 0 and all(c == " " for c in line[max(0, start - 1) : start + len(text) + 1]):
                line[start : start + len(text)] = text
        return "".join(line)
