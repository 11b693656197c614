"""Shown instead of everything when the terminal is too small."""

from __future__ import annotations

from textual.widget import Widget
from textual.widgets import Static


class TinyNotice(Static):
    """Says what is needed. What had the keyboard before it was hidden gets it back with the room."""

    def __init__(self) -> None:
        super().__init__("Too small:\n30×8 needed", id="tiny-notice")
        self._had: Widget | None = None

    def on_mount(self) -> None:
        """Learn who loses the keyboard."""
        self.watch(self.screen, "focused", self._lost, init=False)

    def _lost(self, before: Widget | None, now: Widget | None) -> None:
        if now is None and self.display:
            self._had = before

    def on_hide(self) -> None:
        """There is room again."""
        screen, had, self._had = self.screen, self._had, None
        if screen.focused is not None:
            return
        screen.set_focus(had if had is not None and had.is_attached else None)
        usual = "*" if screen.AUTO_FOCUS is None else screen.AUTO_FOCUS
        if screen.focused is None and usual:
            screen.focus_next(usual)
