"""Where the user types: Enter sends, Shift+Enter and Ctrl+J begin a new line."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.events import Key
from textual.message import Message
from textual.widgets import TextArea

NEWLINE_KEYS = ("shift+enter", "ctrl+j", "alt+enter")


class Prompt(TextArea):
    """A growing text area. A paste of many lines stays one message."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("alt+left", "cursor_word_left", "Word left", show=False),
        Binding("alt+right", "cursor_word_right", "Word right", show=False),
    ]

    class Sent(Message):
        """The user pressed Enter on a text that is not blank."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def __init__(self, id: str | None = None) -> None:
        super().__init__(
            id=id,
            compact=True,
            highlight_cursor_line=False,
            placeholder="Ask anything · Enter sends · Ctrl+J new line · /help",
        )

    async def _on_key(self, event: Key) -> None:
        """Send or break the line before the text area sees the key."""
        if event.key == "enter":
            event.stop()
            event.prevent_default()
            if self.text.strip():
                self.post_message(self.Sent(self.text))
        elif event.key in NEWLINE_KEYS:
            event.stop()
            event.prevent_default()
            self.insert("\n")
        else:
            await super()._on_key(event)
