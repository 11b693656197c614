"""Waits for one key."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.events import Key
from textual.screen import ModalScreen
from textual.widgets import Static

from app.chat.screens.base import LOW_HEIGHTS, WIDTHS


class KeyScreen(ModalScreen[str | None]):
    """Returns the key that was pressed, None for Esc."""

    HORIZONTAL_BREAKPOINTS: list[tuple[int, str]] | None = WIDTHS
    VERTICAL_BREAKPOINTS: list[tuple[int, str]] | None = LOW_HEIGHTS

    def __init__(self, title: str, present: str) -> None:
        super().__init__()
        self._title, self._present = title, present

    def compose(self) -> ComposeResult:
        """What for, what it is now, how to leave."""
        with Vertical(id="dialog", classes="-small"):
            yield Static(self._title, id="dialog-title", markup=False)
            yield Static(f"Now {self._present}. Press the new key.", markup=False)
            yield Static("Esc leaves it as it is", id="dialog-keys")

    def on_key(self, event: Key) -> None:
        """Whatever it does elsewhere."""
        event.stop()
        event.prevent_default()
        self.dismiss(None if event.key == "escape" else event.key)
