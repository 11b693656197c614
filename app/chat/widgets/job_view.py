"""A long job: all of it as one bar, and its steps with bars, rates and time left."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.widget import Widget

from app import format
from app.chat.widgets.block_strip import strip
from app.job_progress import JobProgress
from app.text import one_line
from runtime.protocol.events import Progress

MIN_BAR, MAX_BAR, MAX_STRIP = 10, 48, 96
# Cells of a step's title, and of what stands beside its bar.
TITLE_CELLS, BESIDE = 15, 27
MARK = 2
# Below this width titles are not aligned.
NARROW = 50
STARTING = "Starting the engine…"


class JobView(Widget):
    """Draws a JobProgress into the room there is; call `show` with every change."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "job--title",
        "job--done",
        "job--half",
        "job--bar",
        "job--rail",
        "job--figures",
    }

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self._progress, self._idle = JobProgress(), STARTING

    def show(self, progress: JobProgress, idle: str = STARTING) -> None:
        """Draw newer figures; `idle` is said while there are none."""
        self._progress, self._idle = progress, idle
        self.refresh()

    def render(self) -> Text:
        """As many lines as there is room for: the whole, then what runs, then the other steps."""
        return Text("\n").join(self._lines(self.content_size.height))

    def _lines(self, room: int) -> list[Text]:
        if not self._progress.steps:
            return [self._text("figures", self._idle)]
        whole = [self._whole()] if self._progress.plan else []
        steps = [line for step in self._progress.steps for line in self._step(step)]
        later = [self._later(step) for step in self._progress.later]
        if len(whole) + len(steps) + len(later) + 1 <= room:
            return [*whole, *([Text()] if whole else []), *steps, *later]
        if len(whole) + len(steps) <= room:
            return [*whole, *steps, *later[: room - len(whole) - len(steps)]]
        return [*whole, *self._step(self._progress.current)][:room]

    def _text(self, part: str, text: str) -> Text:
        return Text(text, self.get_component_rich_style(f"job--{part}"))

    def _whole(self) -> Text:
        share, left = self._progress.share, self._progress.left_s
        cells = TITLE_CELLS if self.content_size.width >= NARROW else 0
        line = [self._text("title", f"  {'Total ':<{cells}}"), self._bar(share)]
        if left is not None and share < 1:
            line.append(self._text("figures", f"  ~{format.duration(left)} left"))
        return Text().join(line)

    def _step(self, step: str) -> list[Text]:
        """One line for a finished step, two for the one that runs."""
        event = self._progress.steps[step]
        title = self._text("title", f"{format.step_title(step):<{TITLE_CELLS}}")
        if self._progress.is_finished(step):
            amount = self._text("figures", format.amount(event))
            return [Text().join([self._text("done", "✓ "), title, amount])]
        picture, words = self._picture(event)
        figures = [words, format.pace(event), one_line(event.note)]
        text = " · ".join(part for part in figures if part)
        running = Text().join([self._text("bar", "▸ "), title, picture])
        return [running, self._text("figures", f"  {text}")]

    def _later(self, step: str) -> Text:
        return self._text("figures", f"· {format.step_title(step)}")

    def _picture(self, event: Progress) -> tuple[Text, str]:
        """A strip of blocks or a bar, and how far it is in words."""
        if not event.total:
            return self._text("figures", "working…"), format.amount(event)
        if event.unit != "blocks":
            return self._bar(event.done / event.total), format.amount(event)
        found = strip(event, min(max(self.content_size.width - TITLE_CELLS - MARK, MIN_BAR), MAX_STRIP))
        parts = {"done": "done", "half": "bar", "open": "rail"}
        return Text().join(self._text(parts[part], chars) for chars, part in found.runs), found.words

    @property
    def _room(self) -> int:
        return min(max(self.content_size.width - TITLE_CELLS - BESIDE, MIN_BAR), MAX_BAR)

    def _bar(self, share: float) -> Text:
        cells = self._room
        full = min(cells, int(cells * share))
        bar = [self._text("bar", "━" * full), self._text("rail", "─" * (cells - full))]
        return Text().join([*bar, self._text("title", f" {int(100 * share):3d} %")])
