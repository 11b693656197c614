"""Asks for one line: a title, a file."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from app.chat.widgets.line_input import LineInput


class LineScreen(ModalScreen[str | None]):
    """Returns what was typed, or None when left with Esc. `hint`: what it is for and what may stand there."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "Cancel")]

    def __init__(self, title: str, text: str = "", hint: str = "") -> None:
        super().__init__()
        self._title, self._text, self._hint = title, text, hint

    def compose(self) -> ComposeResult:
        """Title, line, what it is for."""
        with Vertical(id="dialog"):
            yield Static(self._title, id="dialog-title", markup=False)
            yield LineInput(self._text, id="line", compact=True)
            yield Static(self._hint, id="dialog-keys", markup=False)

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.dismiss(event.value.strip())
