"""Which of several code blocks is meant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static

from app.code_blocks import CodeBlock
from app.text import one_line


class CodePicker(ModalScreen[str | None]):
    """Returns the chosen block's text, None when left with Esc. The last block is marked at first."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "Cancel")]

    def __init__(self, blocks: Sequence[CodeBlock]) -> None:
        super().__init__()
        self._blocks = blocks

    def compose(self) -> ComposeResult:
        """A line for every block."""
        with Vertical(id="dialog", classes="-small"):
            yield Static("Copy which block?", id="dialog-title")
            yield OptionList(*map(_line, self._blocks), id="code-blocks", compact=True)
            yield Static("Enter copies · Esc closes", id="dialog-keys")

    def on_mount(self) -> None:
        """The newest block is the likeliest."""
        self.query_one(OptionList).highlighted = len(self._blocks) - 1

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._blocks[event.option_index].text)


def _line(block: CodeBlock) -> Text:
    lines = len(block.text.splitlines())
    return Text.assemble(
        (f"{one_line(block.language) or 'text':<12}", "bold"),
        f"{lines:>4} lines  {one_line(block.first_line)}",
        no_wrap=True,
        overflow="ellipsis",
    )
