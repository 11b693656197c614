"""What a model thought before it answered: one line, unfolded on demand."""

from __future__ import annotations

from textual.events import Click
from textual.widgets import Static

from app.text import neutralise
from app.thinking import Parts


class ThoughtView(Static):
    """Hidden where nothing was thought; a click or `toggle` unfolds it."""

    def __init__(self) -> None:
        super().__init__(classes="thought", markup=False)
        self._parts, self._unfolded = Parts(), False
        self.display = False

    def show(self, parts: Parts) -> None:
        """Draw the thinking of an answer, if it changed."""
        if parts.thinking == self._parts.thinking and parts.open == self._parts.open:
            return
        self._parts = Parts(parts.thinking, "", parts.open)
        self._draw()

    def toggle(self) -> bool:
        """Unfold or fold; whether there is anything."""
        self._unfolded = not self._unfolded
        self._draw()
        return self.display

    def on_click(self, event: Click) -> None:
        """The same by mouse."""
        event.stop()
        self.toggle()

    def _draw(self) -> None:
        parts = self._parts
        self.display = bool(parts.thinking) or parts.open
        words = len(parts.thinking.split())
        state = "thinking…" if parts.open else "thought"
        title = f"{'▾' if self._unfolded else '▸'} {state} {words} words"
        self.update(f"{title}\n{neutralise(parts.thinking)}" if self._unfolded else title)
