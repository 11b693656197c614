"""Every action with its key and slash command, and what the slider's words mean."""

from __future__ import annotations

from typing import ClassVar

from rich.table import Table
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from app.actions import ACTIONS

WORDS = (
    ("target", "how much slower the low-bit products may get, chosen with the slider"),
    ("measured", "what corrections really cost, as a share of a whole step"),
    ("channels corrected", "inputs per token, over all layers, whose lost precision is added back"),
    ("k_chunk", "corrected channels per 1024, by kind of layer"),
    ("corrects from", "the position from which the slider changes anything on this machine"),
    ("lossless", "the INT8 weights themselves instead of the low-bit ones"),
    ("reused", "prompt tokens that were still in the cache from the last turn"),
)
KEYS = {
    "escape": "Esc",
    "ctrl+left": "Ctrl+←",
    "ctrl+right": "Ctrl+→",
    "ctrl+end": "Ctrl+End",
    "": "Ctrl+Q, Ctrl+D",
}
PLAIN = (
    ("Enter", "", "Send the message"),
    ("Ctrl+J, Shift+Enter", "", "New line in the message"),
    ("PgUp, PgDn", "", "Scroll the conversation"),
)


class HelpScreen(ModalScreen[None]):
    """Closed by Esc, F1 or Enter."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,f1,enter,q", "dismiss(None)", "Close", priority=True)
    ]

    def compose(self) -> ComposeResult:
        """Actions first, then the words."""
        with Vertical(id="dialog"):
            yield Static("Keys and commands", id="dialog-title")
            with VerticalScroll(id="help-body"):
                yield Static(_actions())
                yield Static(_words(), id="help-words")
            yield Static("Esc closes", id="dialog-keys")


def _actions() -> Table:
    table = Table.grid(padding=(0, 2))
    for key, slash, text in PLAIN:
        table.add_row(key, slash, text)
    for action in ACTIONS:
        key = KEYS.get(action.keys, action.keys.upper().replace("CTRL+", "Ctrl+"))
        table.add_row(key, action.slash, action.help)
    return table


def _words() -> Table:
    table = Table.grid(padding=(0, 2))
    for word, meaning in WORDS:
        table.add_row(word, meaning)
    return table
