"""What the machine has, as the engine found it."""

from __future__ import annotations

from typing import Any, ClassVar

from rich.console import Group
from rich.table import Table
from rich.text import Text
from textual.widgets import Static

from app.hardware import Row, brief

_MARKS = {True: "✓", False: "✗", None: "·"}
_PARTS = {True: "hardware--good", False: "hardware--bad", None: "hardware--plain"}


class HardwareCard(Static):
    """Draws a doctor's report."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"hardware--title", *_PARTS.values()}

    def __init__(self, id: str | None = None) -> None:
        super().__init__("Looking at the hardware…", id=id)

    def show(self, report: dict[str, Any]) -> None:
        """Draw the findings."""
        table = Table.grid(padding=(0, 1))
        table.add_column(width=1)
        table.add_column(max_width=28)
        table.add_column(ratio=1)
        for row in brief(report):
            table.add_row(*self._cells(row))
        self.update(Group(table))

    def _cells(self, row: Row) -> tuple[Text, Text, Text]:
        verdict = self.get_component_rich_style(_PARTS[row.ok])
        title = self.get_component_rich_style("hardware--title")
        return Text(_MARKS[row.ok], verdict), Text(row.title, title), Text(row.text)
