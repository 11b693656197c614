"""What the machine has: at once what the system knows, then what the engine measured."""

from __future__ import annotations

from typing import Any, ClassVar

from rich.table import Table
from rich.text import Text
from textual.widgets import Static

from app.hardware import Row
from app.machine_card import card

_MARKS = {True: "✓", False: "✗", None: "·"}
_PARTS = {True: "hardware--good", False: "hardware--bad", None: "hardware--plain"}
TITLE_CELLS = 14


class HardwareCard(Static):
    """Draws a doctor's report."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"hardware--title", "hardware--fix", *_PARTS.values()}

    def __init__(self, id: str | None = None) -> None:
        super().__init__("Looking at the hardware…", id=id)

    def show(self, report: dict[str, Any], measured: bool) -> None:
        """Draw the findings; until `measured` more are on their way."""
        table = Table.grid(padding=(0, 1))
        table.add_column(width=1)
        table.add_column(max_width=TITLE_CELLS)
        table.add_column(ratio=1)
        for row in card(report, measured):
            table.add_row(*self._cells(row))
        self.update(table)

    def _cells(self, row: Row) -> tuple[Text, Text, Text]:
        text = Text(row.text)
        if row.fix:
            fix = f"→ {row.fix[0].upper()}{row.fix[1:]}."
            text.append(f"\n{fix}", self.get_component_rich_style("hardware--fix"))
        verdict = self.get_component_rich_style(_PARTS[row.ok])
        title = self.get_component_rich_style("hardware--title")
        return Text(_MARKS[row.ok], verdict), Text(row.title, title), text
