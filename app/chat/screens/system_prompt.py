"""Edits what the model is told before the conversation."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static, TextArea


class SystemPromptScreen(ModalScreen[str | None]):
    """Returns the new text, or None when left with Esc."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "Cancel"),
        Binding("ctrl+s,f4", "keep", "Save", priority=True),
    ]

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def compose(self) -> ComposeResult:
        """Title, editor, keys."""
        with Vertical(id="dialog"):
            yield Static("System prompt", id="dialog-title")
            yield TextArea(
                self._text, id="dialog-text", compact=True, placeholder="You are a helpful assistant …"
            )
            yield Static("Ctrl+S saves for this and later chats · Esc leaves it as it was", id="dialog-keys")

    def action_keep(self) -> None:
        """Save."""
        self.dismiss(self.query_one(TextArea).text.strip())
