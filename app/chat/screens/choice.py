"""Asks one question that has a few answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option


@dataclass(frozen=True, slots=True)
class Choice:
    """`name`: what the screen returns; empty for "do nothing". `help`: what it means."""

    name: str
    label: str
    help: str = ""


class ChoiceScreen(ModalScreen[str]):
    """Returns the name of the choice; empty when left with Esc. The first choice is marked."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss('')", "Leave", priority=True)]
    AUTO_FOCUS = "#choices"

    def __init__(self, title: str, text: str, choices: Sequence[Choice]) -> None:
        super().__init__()
        self._question, self._text, self._choices = title, text, choices

    def compose(self) -> ComposeResult:
        """Question, explanation, choices."""
        with Vertical(id="choice"):
            yield Static(self._question, id="choice-title", markup=False)
            yield Static(self._text, id="choice-text", markup=False)
            yield OptionList(*map(self._option, self._choices), id="choices")
            yield Static("↑ ↓ and Enter, or a click · Esc leaves", id="choice-keys", markup=False)

    def _option(self, choice: Choice) -> Option:
        text = Text(choice.label, "bold")
        return Option(text.append(f"\n{choice.help}", "not bold") if choice.help else text)

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.dismiss(self._choices[event.option_index].name)
