"""Where the user types: Enter sends, Shift+Enter and Ctrl+J begin a new line."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.events import Key
from textual.message import Message
from textual.widgets import TextArea

from app.chat.widgets.grapheme_area import GraphemeArea

NEWLINE_KEYS = ("shift+enter", "ctrl+j", "alt+enter")
# What the text area does with a key that types nothing.
EDITS = {
    key.strip(): binding.action
    for binding in TextArea.BINDINGS
    if isinstance(binding, Binding)
    for key in binding.key.split(",")
}


class Prompt(GraphemeArea):
    """A growing text area. A paste of many lines stays one message."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("alt+left", "cursor_word_left", "Word left", show=False),
        Binding("alt+right", "cursor_word_right", "Word right", show=False),
        Binding("escape", "cancel_edit", "Leave it as it was", show=False),
    ]

    class Sent(Message):
        """The user pressed Enter on a text that is not blank."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class EditEnded(Message):
        """The text is a new message again, no longer an old one that is edited."""

    class WentUp(Message):
        """The user wants to the messages above: cursor up in an empty prompt."""

    def __init__(self, id: str | None = None) -> None:
        super().__init__(
            id=id,
            compact=True,
            highlight_cursor_line=False,
            placeholder="Ask anything · Enter sends · Ctrl+J new line · /help",
        )

    def begin_edit(self, text: str) -> None:
        """Edit an old message."""
        self.text = text
        self.move_cursor(self.document.end)
        self.border_title = "Edit: Enter asks anew in its old place · Esc leaves it"
        self.add_class("-editing")
        self.focus()

    def end_edit(self) -> None:
        """Back to new messages."""
        if self.has_class("-editing"):
            self.border_title = ""
            self.remove_class("-editing")
            self.post_message(self.EditEnded())

    def action_cancel_edit(self) -> None:
        """Leave the old message as it was."""
        if self.has_class("-editing"):
            self.clear()
            self.end_edit()

    async def _on_key(self, event: Key) -> None:
        """Send or break the line before the text area sees the key."""
        if event.key == "enter":
            event.stop()
            event.prevent_default()
            if self.text.strip():
                self.post_message(self.Sent(self.text))
        elif event.key == "up" and not self.text:
            event.stop()
            event.prevent_default()
            self.post_message(self.WentUp())
        elif event.key in NEWLINE_KEYS:
            event.stop()
            event.prevent_default()
            self.insert("\n")
        elif event.key in EDITS:
            # By the usual way, over all parents, it would come behind a letter that was typed after it.
            event.stop()
            event.prevent_default()
            await self.run_action(EDITS[event.key])
        else:
            await super()._on_key(event)
