"""Every action with its key of now and its slash command, and what the words on screen mean; searchable."""

from __future__ import annotations

from typing import ClassVar

from rich.console import Group as Lines
from rich.table import Table
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.events import Resize
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from app.actions import by_name
from app.chat.screens.base import LOW_HEIGHTS, WIDTHS
from app.helping import Entry, Group, groups
from app.keymap import Keymap

# From this many columns on, commands have a column of their own.
WIDE = 84
# Keys and commands stand below each other over all groups.
COLUMNS = (21, 16, 0)


class HelpScreen(ModalScreen[None]):
    """Typing searches; Esc clears the search, then closes."""

    HORIZONTAL_BREAKPOINTS: list[tuple[int, str]] | None = WIDTHS
    VERTICAL_BREAKPOINTS: list[tuple[int, str]] | None = LOW_HEIGHTS
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Close", priority=True),
        Binding("f1,enter", "dismiss(None)", "Close", priority=True),
        Binding("up", "scroll(-1)", "Up", show=False, priority=True),
        Binding("down", "scroll(1)", "Down", show=False, priority=True),
        Binding("pageup", "page(-1)", "Page up", show=False, priority=True),
        Binding("pagedown", "page(1)", "Page down", show=False, priority=True),
    ]
    AUTO_FOCUS = "#help-search"

    def __init__(self, keymap: Keymap, first: tuple[Group, ...] = ()) -> None:
        super().__init__()
        self._keymap, self._first = keymap, first

    def compose(self) -> ComposeResult:
        """The search, what it finds, how to leave."""
        with Vertical(id="dialog"):
            yield Static("Keys and commands", id="dialog-title")
            yield Input(id="help-search", placeholder="Type to search: slider, copy, ctrl+r …", compact=True)
            with VerticalScroll(id="help-body", can_focus=False):
                yield Static(id="help-text")
            yield Static(self._leaving(), id="dialog-keys")

    def _leaving(self) -> str:
        settings = self._keymap.label(by_name("settings"))
        return f"↑ ↓ PgUp PgDn scroll · Esc closes · {settings} changes keys"

    @on(Input.Changed)
    def _searched(self) -> None:
        self._show()
        self.query_one("#help-body").scroll_home(animate=False)

    def on_resize(self, event: Resize) -> None:
        """Other columns fit."""
        self._show()

    def _show(self) -> None:
        found = groups(self._keymap, self.query_one(Input).value, self._first)
        wide = self.size.width >= WIDE
        body = Lines(*(_drawn(group, wide) for group in found)) if found else Text("Nothing has these words.")
        self.query_one("#help-text", Static).update(body)

    def action_leave(self) -> None:
        """Clear the search, else close."""
        search = self.query_one(Input)
        if search.value:
            search.value = ""
        else:
            self.dismiss(None)

    def action_scroll(self, direction: int) -> None:
        """By a line."""
        self.query_one("#help-body").scroll_relative(y=direction, animate=False)

    def action_page(self, direction: int) -> None:
        """By a page."""
        body = self.query_one("#help-body")
        (body.scroll_page_up if direction < 0 else body.scroll_page_down)(animate=False)


def _drawn(group: Group, wide: bool) -> Lines:
    table = Table.grid(padding=(0, 2))
    for width in COLUMNS if wide else ():
        table.add_column(min_width=width)
    for entry in group.entries:
        table.add_row(*_cells(entry, wide))
    return Lines(Text(group.title, "bold"), table, Text())


def _cells(entry: Entry, wide: bool) -> tuple[Text, ...]:
    if wide:
        return Text(entry.key, no_wrap=True), Text(entry.command, no_wrap=True), Text(entry.text)
    text = Text(entry.text)
    return Text(entry.key), text.append(f"  {entry.command}", "bold") if entry.command else text
