"""What a token took lately, as a line of bars with a mark where the slider was moved."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from rich.text import Text

from app import format
from app.chat.widgets.rail import Styles
from app.slider import Position, Sample, TokenTimes

BARS = "▁▂▃▄▅▆▇█"
MARK, AXIS, CORNER, TICK, FOOT = "│", "─", "└", "┤", "┴"
UNMEASURED = "measured while an answer is written"
# Bars show at least this share of the usual time, so that mere noise stays flat.
MIN_SPAN = 0.2
# A share of the shown samples that may lie beyond the bars, at either end.
BEYOND = 0.05
MIN_CELLS = 10


@dataclass(frozen=True, slots=True)
class _Cell:
    """One column: a sample, or the mark of a move to a position, or the gap before another answer."""

    ms: float | None = None
    moved_to: Position | None = None


@dataclass(frozen=True, slots=True)
class Sparkline:
    """Draws the newest samples that fit into `width` cells; `indent` cells at the left hold captions."""

    times: TokenTimes
    width: int
    style: Styles
    indent: int = 7

    def line(self) -> Text:
        """Bars and figures in one line."""
        text = Text("ms/tok ".rjust(self.indent), self.style("label"))
        if not self.times.samples:
            return text.append(UNMEASURED, self.style("label"))
        figures, room = self._room()
        cells = _cells(self.times.samples)[-room:]
        text.append(self._row(cells, _span(cells), 0, 1))
        return text.append(" " * (room - len(cells))).append(figures)

    def chart(self, rows: int = 2) -> list[Text]:
        """Bars over several rows with an axis that names the positions."""
        if not self.times.samples:
            return [self.line()]
        figures, room = self._room()
        cells = _cells(self.times.samples)[-room:]
        low, high = _span(cells)
        lines = []
        for row in reversed(range(rows)):
            caption = format.milliseconds(high if row else low)
            line = Text(f"{caption} {TICK}".rjust(self.indent), self.style("label"))
            lines.append(line.append(self._row(cells, (low, high), row, rows)))
        return [*lines, self._axis(cells, room).append(figures)]

    def _room(self) -> tuple[Text, int]:
        """The figures where there is room for them, and cells for the bars."""
        figures, cells = self._figures(), max(1, self.width - self.indent)
        fits = cells - figures.cell_len >= MIN_CELLS
        return (figures, cells - figures.cell_len) if fits else (Text(), cells)

    def _row(self, cells: Sequence[_Cell], span: tuple[float, float], row: int, rows: int) -> Text:
        text = Text()
        for cell in cells:
            if cell.ms is None:
                text.append(MARK if cell.moved_to else " ", self.style("mark"))
            else:
                text.append(
                    _bar(_level(cell.ms, span, rows * len(BARS)) - row * len(BARS)), self.style("paid")
                )
        return text

    def _axis(self, cells: Sequence[_Cell], room: int) -> Text:
        line = [AXIS] * room
        for at, cell in enumerate(cells):
            if cell.moved_to:
                label = f"{FOOT}{_name(cell.moved_to)} "
                end = next((later for later in range(at + 1, len(cells)) if cells[later].moved_to), len(line))
                fits = at + len(label) <= end
                line[at : at + (len(label) if fits else 1)] = label if fits else FOOT
        text = Text(f"ms {CORNER}".rjust(self.indent), self.style("label"))
        return text.append("".join(line), self.style("label"))

    def _figures(self) -> Text:
        """`  13.0 ms a token, 11.9 at 5 %`: now, and before the last move."""
        text, now, before = Text(), self.times.now_ms, self.times.before
        if now is not None:
            text.append(f"  {format.milliseconds(now)}", self.style("value"))
            text.append(" ms a token", self.style("label"))
            if before is not None:
                text.append(f", {format.milliseconds(before[1])} at {_name(before[0])}", self.style("label"))
        return text


def _name(position: Position) -> str:
    return "lossless" if position.lossless else format.percent(position.pct)


def _cells(samples: Iterable[Sample]) -> list[_Cell]:
    cells: list[_Cell] = []
    before: Sample | None = None
    for sample in samples:
        if before and sample.position != before.position:
            cells.append(_Cell(moved_to=sample.position))
        elif before and sample.first:
            cells.append(_Cell())
        cells.append(_Cell(ms=sample.ms))
        before = sample
    return cells


def _span(cells: Iterable[_Cell]) -> tuple[float, float]:
    """Milliseconds of the lowest and of the highest bar; single outliers lie beyond."""
    values = sorted(cell.ms for cell in cells if cell.ms is not None)
    if not values:
        return 0.0, 1.0
    cut = int(len(values) * BEYOND)
    usual = median(values)
    return min(values[cut], usual * (1 - MIN_SPAN / 2)), max(values[-1 - cut], usual * (1 + MIN_SPAN / 2))


def _level(ms: float, span: tuple[float, float], levels: int) -> int:
    """1 for the lowest bar, `levels` for the highest."""
    low, high = span
    return 1 + round(min(max((ms - low) / (high - low), 0.0), 1.0) * (levels - 1))


def _bar(level: int) -> str:
    return " " if level <= 0 else BARS[min(level, len(BARS)) - 1]
