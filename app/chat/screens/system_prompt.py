"""Edits what the model is told before the conversation, and keeps such texts under names."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static, TextArea
from textual.widgets.option_list import Option

from app.chat.screens.base import LOW_HEIGHTS, WIDTHS
from app.chat.screens.line import LineScreen
from app.chat.widgets.grapheme_area import GraphemeArea
from app.system_prompts import PromptDrafts

OWN = "This conversation"
KEYS = (
    "Ctrl+S uses the text now and in new chats · F2 keeps it under a name · Shift+Del deletes the name · Esc"
)


class SystemPromptScreen(ModalScreen[str | None]):
    """Returns the text to use, None when left with Esc. What is kept under names is in `drafts.library`."""

    HORIZONTAL_BREAKPOINTS: list[tuple[int, str]] | None = WIDTHS
    VERTICAL_BREAKPOINTS: list[tuple[int, str]] | None = LOW_HEIGHTS
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "Cancel"),
        Binding("ctrl+s,f4", "keep", "Use", priority=True),
        Binding("f2", "save_as", "Keep under a name", priority=True),
        Binding("shift+delete", "delete", "Delete the name", priority=True),
    ]
    AUTO_FOCUS = "#dialog-text"

    def __init__(self, drafts: PromptDrafts) -> None:
        super().__init__()
        self.drafts = drafts

    def compose(self) -> ComposeResult:
        """Title, names beside the editor, keys."""
        with Vertical(id="dialog"):
            yield Static("System prompt", id="dialog-title")
            with Horizontal(id="prompts"):
                yield OptionList(id="prompt-names", compact=True)
                yield GraphemeArea(
                    self.drafts.text,
                    id="dialog-text",
                    compact=True,
                    placeholder="You are a helpful assistant …",
                )
            yield Static(KEYS, id="dialog-keys")

    def on_mount(self) -> None:
        """Show the names there are."""
        self._list()

    def _list(self) -> None:
        """Names anew, the chosen one marked; without any, the editor has all the room."""
        names = self.query_one(OptionList)
        names.display = bool(self.drafts.library)
        names.clear_options()
        names.add_options([Option(OWN), *(Option(self._line(name)) for name in self.drafts.names)])
        names.highlighted = ["", *self.drafts.names].index(self.drafts.chosen)

    def _line(self, name: str) -> Text:
        unsaved = name == self.drafts.chosen and self.drafts.changed
        return Text(f"{name} *" if unsaved else name, no_wrap=True, overflow="ellipsis")

    def _edit(self) -> None:
        self.query_one(TextArea).text = self.drafts.text

    @on(OptionList.OptionHighlighted)
    def _chosen(self, event: OptionList.OptionHighlighted) -> None:
        name = ["", *self.drafts.names][event.option_index]
        if name != self.drafts.chosen:
            self.drafts.choose(name)
            self._edit()

    @on(OptionList.OptionSelected)
    def _to_the_text(self) -> None:
        self.query_one(TextArea).focus()

    @on(TextArea.Changed)
    def _typed(self) -> None:
        self.drafts.typed(self.query_one(TextArea).text)

    def action_keep(self) -> None:
        """Use the text."""
        self.dismiss(self.query_one(TextArea).text.strip())

    def action_save_as(self) -> None:
        """Keep the text under a name."""
        hint = "Enter keeps the text under this name, in place of one that is there · Esc leaves"
        self.app.push_screen(LineScreen("Name of this prompt", self.drafts.chosen, hint), self._save)

    def _save(self, name: str | None) -> None:
        if name is None:
            return
        if problem := self.drafts.save(name):
            self.notify(problem, severity="warning", markup=False)
        else:
            self._list()

    def action_delete(self) -> None:
        """Forget the chosen name, or bring it back."""
        self.notify(self.drafts.delete(), markup=False)
        self._list()
        self._edit()
