"""What tuning brought: the slider's positions as a table, and k_chunk along it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from textual.events import Resize
from textual.widgets import Static

from app.chat.widgets.curve_plots import TITLES, path_plot
from app.closing import Lossless, Position, positions, share
from app.tune_findings import KINDS, TuneFindings

PREDICTED = "tokens/s are predicted from what was measured; the chat measures them."
HEADER = ("  slider", "predicted", "qkv·o·gate/up·down", "corrected")
# Widths from which tables stand in the card, and heights from which the path is drawn.
WIDE, TALL, PATH_LINES = 76, 22, 6


class ClosingCard(Static):
    """Draws findings."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "closing--name",
        "closing--speed",
        "closing--facts",
        "closing--here",
        *(f"closing--{kind}" for kind in KINDS),
    }

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self._findings, self._lossless, self._here = TuneFindings(), Lossless(), ""

    def show(self, findings: TuneFindings, lossless: Lossless, here: str) -> None:
        """Draw them; `here` names the position at which the slider stands."""
        self._findings, self._lossless, self._here = findings, lossless, here
        self._draw()

    def on_resize(self, event: Resize) -> None:
        """Draw what there is room for."""
        self._draw()

    def _draw(self) -> None:
        rows = positions(self._findings.rows(), self._lossless)
        parts: list[RenderableType] = [self._table(rows), Text(), self._text("facts", PREDICTED)]
        if told := share(self._findings.token):
            parts.append(self._text("facts", told))
        if self.app.size.height >= TALL and self._findings.path:
            parts += [Text(), *self._path()]
        self.update(Group(*parts))

    def _text(self, part: str, text: str) -> Text:
        return Text(text, self.get_component_rich_style(f"closing--{part}"))

    def _table(self, rows: Sequence[Position]) -> Table:
        table, wide = Table.grid(padding=(0, 2)), self.app.size.width >= WIDE
        table.add_column(no_wrap=True)
        table.add_column(no_wrap=True, justify="right")
        if wide:
            table.add_column(no_wrap=True)
        table.add_column(ratio=1)
        if wide:
            table.add_row(*(self._text("facts", title) for title in HEADER))
        for row in rows:
            name = f"▸ {row.name}" if row.name == self._here else f"  {row.name}"
            cells = [self._text("here" if row.name == self._here else "name", name)]
            cells += [self._text("speed", row.speed)] + ([self._text("facts", row.table)] if wide else [])
            table.add_row(*cells, self._text("facts", row.meaning))
        return table

    def _path(self) -> list[Text]:
        """The staircases of all kinds under one another's names."""
        cells = max(20, min(self.size.width, 100))
        legend = Text("  ").join(self._text(kind, f"━ {TITLES[kind]}") for kind in KINDS)
        title = self._text("facts", "Corrected of every 1024 channels, from 0 to 20 %:  ")
        lines = [Text().join([title, legend])]
        for row in path_plot(self._findings.path, cells, PATH_LINES).cells():
            lines.append(Text().join(self._text(part or "facts", char) for char, part in row))
        return lines
