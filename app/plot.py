"""Curves drawn with braille dots, eight in a cell, each cell in the colour of one part."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

_FIRST = 0x2800
# Bits of a cell's dots, by row and column.
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
Point = tuple[float, float]
Cells = list[list[tuple[str, str]]]


@dataclass(slots=True)
class Canvas:
    """`width` x `height` cells. Where parts meet in a cell, the one that was drawn last names it."""

    width: int
    height: int
    _bits: dict[tuple[int, int], int] = field(default_factory=dict)
    _parts: dict[tuple[int, int], str] = field(default_factory=dict)

    @property
    def dots(self) -> tuple[int, int]:
        """Columns and rows of dots."""
        return 2 * self.width, 4 * self.height

    def dot(self, x: int, y: int, part: str) -> None:
        """Set a dot; (0, 0) is at the lower left. What lies outside is left out."""
        columns, rows = self.dots
        if 0 <= x < columns and 0 <= y < rows:
            row = rows - 1 - y
            cell = x // 2, row // 4
            self._bits[cell] = self._bits.get(cell, 0) | _DOTS[row % 4][x % 2]
            self._parts[cell] = part

    def line(self, start: tuple[int, int], end: tuple[int, int], part: str) -> None:
        """Dots from one to the other."""
        steps = max(abs(end[0] - start[0]), abs(end[1] - start[1]), 1)
        for step in range(steps + 1):
            self.dot(
                round(start[0] + (end[0] - start[0]) * step / steps),
                round(start[1] + (end[1] - start[1]) * step / steps),
                part,
            )

    def cells(self) -> Cells:
        """Rows from the top: a character and its part's name for every cell; blanks where nothing is."""
        return [[self._cell((x, y)) for x in range(self.width)] for y in range(self.height)]

    def _cell(self, cell: tuple[int, int]) -> tuple[str, str]:
        return (chr(_FIRST + self._bits[cell]), self._parts[cell]) if cell in self._bits else (" ", "")


@dataclass(frozen=True, slots=True)
class Axis:
    """Values from `low` to `high`; `logarithmic`: by log2(1 + value)."""

    low: float
    high: float
    logarithmic: bool = False

    @classmethod
    def around(cls, values: Iterable[float], logarithmic: bool = False) -> Axis:
        """From the smallest to the largest; a single value lies in the middle."""
        known = list(values)
        low, high = min(known, default=0.0), max(known, default=1.0)
        return cls(low, high, logarithmic) if high > low else cls(low - 0.5, high + 0.5, logarithmic)

    def place(self, value: float, cells: int) -> int:
        """The dot of a value among so many."""
        low, high, at = map(self._scaled, (self.low, self.high, value))
        return round((at - low) / (high - low) * (cells - 1))

    def _scaled(self, value: float) -> float:
        return math.log2(1 + max(value, 0.0)) if self.logarithmic else value


@dataclass(frozen=True, slots=True)
class Plot:
    """A canvas with axes."""

    canvas: Canvas
    x: Axis
    y: Axis

    def curve(self, points: Sequence[Point], part: str) -> None:
        """Points in order, joined."""
        places = [self._place(point) for point in points]
        for place in places[:1]:
            self.canvas.dot(*place, part)
        for start, end in pairwise(places):
            self.canvas.line(start, end, part)

    def steps(self, points: Sequence[Point], part: str) -> None:
        """A staircase: every value holds until the next point, the last one to the right end."""
        if not points:
            return
        last = (self.x.high, points[-1][1])
        corners = [corner for one, two in pairwise([*points, last]) for corner in (one, (two[0], one[1]))]
        self.curve([*corners, last], part)

    def level(self, value: float, part: str) -> None:
        """A dotted line across."""
        columns, rows = self.canvas.dots
        for x in range(0, columns, 3):
            self.canvas.dot(x, self.y.place(value, rows), part)

    def upright(self, value: float, part: str) -> None:
        """A dotted line from the bottom to the top."""
        columns, rows = self.canvas.dots
        for y in range(0, rows, 2):
            self.canvas.dot(self.x.place(value, columns), y, part)

    def _place(self, point: Point) -> tuple[int, int]:
        columns, rows = self.canvas.dots
        return self.x.place(point[0], columns), self.y.place(point[1], rows)
