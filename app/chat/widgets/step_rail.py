"""Where the wizard stands."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.widget import Widget

from app.setup import Step

TITLES = {
    Step.HARDWARE: "Hardware",
    Step.MODEL: "Model",
    Step.PREPARE: "Fetch & prepare",
    Step.TUNE: "Tune",
    Step.READY: "Chat",
}
MIN_WIDE = 70


class StepRail(Widget):
    """All steps in a line; the present one stands out. Narrow: only its number and title."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"rail--done", "rail--now", "rail--later"}

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self._step = Step.HARDWARE

    def show(self, step: Step) -> None:
        """Move to a step."""
        self._step = step
        self.refresh()

    def render(self) -> Text:
        """The line."""
        if self.content_size.width < MIN_WIDE:
            return Text(f"{self._step + 1} of {len(TITLES)}  {TITLES[self._step]}", self._style("now"))
        return Text("  ─  ", self._style("later")).join(self._part(step) for step in TITLES)

    def _style(self, part: str) -> str:
        return str(self.get_component_rich_style(f"rail--{part}"))

    def _part(self, step: Step) -> Text:
        if step < self._step:
            return Text(f"✓ {TITLES[step]}", self._style("done"))
        if step == self._step:
            return Text(f"● {TITLES[step]}", self._style("now"))
        return Text(f"○ {TITLES[step]}", self._style("later"))
