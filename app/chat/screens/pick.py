"""Chooses one of several values, which can be tried while the mark moves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from app.chat.screens.base import LOW_HEIGHTS, WIDTHS
from app.text import one_line


class PickScreen(ModalScreen[int | None]):
    """Returns the index of the choice, None when left with Esc; then what was there before is tried again."""

    HORIZONTAL_BREAKPOINTS: list[tuple[int, str]] | None = WIDTHS
    VERTICAL_BREAKPOINTS: list[tuple[int, str]] | None = LOW_HEIGHTS
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Cancel", priority=True)]

    def __init__(
        self,
        title: str,
        choices: Sequence[tuple[Any, str]],
        present: Any,
        preview: Callable[[Any], None] | None = None,
    ) -> None:
        super().__init__()
        self._title, self._choices, self._present, self._preview = title, choices, present, preview

    def compose(self) -> ComposeResult:
        """The values, the present one marked."""
        with Vertical(id="dialog", classes="-small"):
            yield Static(self._title, id="dialog-title", markup=False)
            yield OptionList(
                *(Option(one_line(words)) for _, words in self._choices), id="picks", compact=True
            )
            yield Static("Enter takes it · Esc leaves it as it was", id="dialog-keys")

    def on_mount(self) -> None:
        """Begin where it is."""
        values = [value for value, _ in self._choices]
        self.query_one(OptionList).highlighted = values.index(self._present) if self._present in values else 0

    @on(OptionList.OptionHighlighted)
    def _tried(self, event: OptionList.OptionHighlighted) -> None:
        if self._preview is not None:
            self._preview(self._choices[event.option_index][0])

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.dismiss(event.option_index)

    def action_leave(self) -> None:
        """As it was."""
        if self._preview is not None:
            self._preview(self._present)
        self.dismiss(None)
