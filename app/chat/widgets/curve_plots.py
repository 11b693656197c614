"""Tuning as it goes on: time against k_chunk for every kind of linear, its knee, then the slider's path."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual.widget import Widget

from app.plot import Axis, Canvas, Plot
from app.slider import MAX_SLOWDOWN_PCT
from app.tune_findings import KINDS, Curve, TuneFindings
from runtime.protocol.events import SlowdownPoint

TITLES = {"qkv": "qkv", "o": "o", "gate_up": "gate/up", "down": "down"}
# A plot smaller than this shows nothing.
MIN_CELLS, MIN_LINES = 20, 2
GAP = 3
# An axis reaches at least so far beyond where it begins.
LEAST_RISE = 1.25
WAITING = "Curves appear here as they are measured."


class CurvePlots(Widget):
    """Draws findings into the room there is: two plots beside each other where they fit."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "curves--title",
        "curves--axis",
        "curves--rail",
        "curves--curve",
        "curves--knee",
        *(f"curves--{kind}" for kind in KINDS),
    }

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self._findings = TuneFindings()

    def show(self, findings: TuneFindings) -> None:
        """Draw what is known now."""
        self._findings = findings
        self.refresh()

    def render(self) -> Text:
        """The plots, row by row."""
        width, height = self.content_size
        curves = {kind: self._findings.curve(kind) for kind in KINDS}
        if not any(curves.values()):
            return self._text("axis", WAITING)
        columns = 2 if width >= 2 * MIN_CELLS + GAP else 1
        rows = len(KINDS) // columns
        lines = height // rows
        if lines < MIN_LINES + 1:
            return Text("\n").join(self._caption(kind, curve) for kind, curve in curves.items())
        cells = (width - GAP * (columns - 1)) // columns
        boxes = [self._box(kind, curves[kind], cells, lines) for kind in KINDS]
        pairs = [boxes[i : i + columns] for i in range(0, len(boxes), columns)]
        return Text("\n").join(line for pair in pairs for line in _beside(pair))

    def _text(self, part: str, text: str) -> Text:
        return Text(text, self.get_component_rich_style(f"curves--{part}"))

    def _caption(self, kind: str, curve: Curve | None) -> Text:
        """`qkv  knee 32  44.5 µs, k to 192`"""
        if curve is None:
            return self._text("title", TITLES[kind])
        last, _ = curve.points[-1]
        knee = self._text("knee", f"  knee {curve.knee}") if curve.knee else Text()
        figures = self._text("axis", f"  {curve.base_us:.1f} µs, k to {last}")
        return Text().join([self._text("title", TITLES[kind]), knee, figures])

    def _box(self, kind: str, curve: Curve | None, cells: int, lines: int) -> list[Text]:
        """A caption and a plot, every line `cells` wide."""
        box = [_padded(self._caption(kind, curve), cells)]
        if curve is None:
            return box + [Text(" " * cells)] * (lines - 1)
        plot, marks = _draw(curve, cells - len(self._label(curve, True)) - 1, lines - 1)
        for number, row in enumerate(plot.canvas.cells()):
            label = self._label(curve, number == 0) if number in (0, lines - 2) else ""
            margin = self._text("axis", f"{label:>{len(self._label(curve, True))}} ")
            box.append(
                _padded(Text().join([margin, *(self._text(marks[part], c) for c, part in row)]), cells)
            )
        return box

    def _label(self, curve: Curve, top: bool) -> str:
        """Microseconds at the ends of the axis."""
        highest = _upright(curve).high
        return f"{highest if top else curve.base_us:.0f}".rjust(len(f"{highest:.0f}"))


def _draw(curve: Curve, cells: int, lines: int) -> tuple[Plot, dict[str, str]]:
    last = curve.points[-1][0]
    plot = Plot(
        Canvas(max(cells, 1), max(lines, 1)),
        Axis(0, max(last, 64), logarithmic=True),
        _upright(curve),
    )
    plot.level(curve.base_us, "base")
    plot.curve([(float(k), us) for k, us in curve.points], "curve")
    if curve.knee:
        plot.upright(curve.knee, "knee")
    return plot, {"": "axis", "base": "rail", "curve": "curve", "knee": "knee"}


def _upright(curve: Curve) -> Axis:
    """From what the linear takes alone to the dearest point, or some more: noise is to look small."""
    return Axis(curve.base_us, max(curve.base_us * LEAST_RISE, *(us for _, us in curve.points), 0.0))


def _padded(line: Text, cells: int) -> Text:
    line.truncate(cells, pad=True)
    return line


def _beside(boxes: Sequence[list[Text]]) -> list[Text]:
    return [Text(" " * GAP).join(lines) for lines in zip(*boxes, strict=True)]


def path_plot(path: Sequence[SlowdownPoint], cells: int, lines: int) -> Canvas:
    """k_chunk of every kind along the slider as staircases; parts are named after the kinds."""
    most = max((getattr(p.k_chunk, kind) for p in path for kind in KINDS), default=0)
    plot = Plot(Canvas(cells, lines), Axis(0, MAX_SLOWDOWN_PCT), Axis(0, max(most, 1)))
    for kind in reversed(KINDS):
        plot.steps([(p.slowdown_pct, getattr(p.k_chunk, kind)) for p in path], kind)
    return plot.canvas
