"""A long job's steps with bars, rates and time left."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.widget import Widget

from app import format
from app.setup import JobProgress
from app.text import one_line
from runtime.protocol.events import Progress

MIN_BAR, MAX_BAR = 10, 48


class JobView(Widget):
    """Draws a JobProgress; call `show` with every change."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "job--title",
        "job--done",
        "job--bar",
        "job--rail",
        "job--figures",
    }

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self._progress = JobProgress()
        self._height = 0

    def show(self, progress: JobProgress) -> None:
        """Draw newer figures."""
        self._progress = progress
        height = self._lines().plain.count("\n")
        self.refresh(layout=height != self._height)
        self._height = height

    def render(self) -> Text:
        """The lines."""
        return self._lines()

    def _lines(self) -> Text:
        """Finished steps as one line each, the running one with its bar and figures."""
        lines = [self._line(step) for step in self._progress.steps]
        if not lines:
            lines = [Text("Starting the engine…", self._style("figures"))]
        return Text("\n", no_wrap=True, overflow="ellipsis").join(lines)

    def _style(self, part: str) -> str:
        return str(self.get_component_rich_style(f"job--{part}"))

    def _line(self, step: str) -> Text:
        event = self._progress.steps[step]
        title = format.step_title(step)
        if self._progress.is_finished(step):
            text = Text().append("✓ ", self._style("done")).append(f"{title:<14} ", self._style("title"))
            return text.append(format.amount(event), self._style("figures"))
        text = Text().append("▸ ", self._style("bar")).append(f"{title:<14} ", self._style("title"))
        text.append(self._bar(event)).append("\n  ")
        return text.append(self._figures(event), self._style("figures"))

    def _bar(self, event: Progress) -> Text:
        if not event.total:
            return Text("working…", self._style("figures"))
        cells = min(max(self.content_size.width - 26, MIN_BAR), MAX_BAR)
        full = min(cells, cells * event.done // event.total)
        text = Text("━" * full, self._style("bar")).append("─" * (cells - full), self._style("rail"))
        return text.append(f" {100 * event.done // event.total:3d} %", self._style("title"))

    def _figures(self, event: Progress) -> str:
        parts = [format.amount(event), format.pace(event), one_line(event.note)]
        return " · ".join(part for part in parts if part)
