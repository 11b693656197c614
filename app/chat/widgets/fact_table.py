"""Facts as two columns: what, and what is known of it."""

from __future__ import annotations

from typing import ClassVar

from rich.table import Table
from rich.text import Text
from textual.widget import Widget

from app.library.facts import Facts


class FactTable(Widget):
    """Draws facts; `show` replaces them."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"facts--title", "facts--text"}

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self._facts: Facts = ()

    def show(self, facts: Facts) -> None:
        """Draw other facts."""
        if facts != self._facts:
            self._facts = facts
            self.refresh(layout=True)

    def render(self) -> Table:
        """The rows."""
        table = Table.grid(padding=(0, 2, 0, 0), expand=True)
        table.add_column(no_wrap=True)
        table.add_column(ratio=1)
        title, text = (self.get_component_rich_style(f"facts--{part}") for part in ("title", "text"))
        for name, value in self._facts:
            table.add_row(Text(name, title), Text(value, text))
        return table
