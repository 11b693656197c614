"""What a model's weights take: a histogram over its tensors, and a bar for every kind of them."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.widget import Widget

from app import format
from app.library.spread import Inspection, Measured, axis, bar, cells_for, columns, histogram
from app.text import one_line

MAX_WIDTH = 110
HEIGHT, LOW_HEIGHT = 8, 4
MIN_BAR, MAX_BAR = 12, 48
# A kind's name and its bits; and the width from which on every figure is shown.
BESIDE_BAR, ALL_FIGURES = 24, 84
BAR_GLYPHS = ("━", "╍", "─")


class BitsPicture(Widget):
    """Draws an Inspection, or nothing before there is one."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "bits--title",
        "bits--column",
        "bits--stored",
        "bits--rail",
        "bits--text",
    }

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self._inspection: Inspection | None = None

    def show(self, inspection: Inspection) -> None:
        """Draw one."""
        if inspection is not self._inspection:
            self._inspection = inspection
            self.refresh(layout=True)

    def render(self) -> Text:
        """Histogram, totals, bars."""
        found = self._inspection
        if found is None or not found.tensors:
            return Text()
        lines = [self._title("Weights by the bits that their tensor takes"), *self._histogram(found), Text()]
        lines.append(self._title("Bits per weight by kind: entropy ━, stored above it ╍, saved of a byte ─"))
        lines += [self._bar(each) for each in (*found.kinds, found.decoder_linears, found.total)]
        lines += [Text(), self._shares(found.total)]
        return Text("\n", no_wrap=True, overflow="ellipsis").join(lines)

    def _style(self, part: str) -> str:
        return str(self.get_component_rich_style(f"bits--{part}"))

    def _title(self, text: str) -> Text:
        return Text(text, self._style("title"))

    @property
    def _width(self) -> int:
        return min(MAX_WIDTH, self.content_size.width or MAX_WIDTH)

    def _histogram(self, found: Inspection) -> list[Text]:
        drawn = histogram(found.tensors, self._width - 8)
        cells = cells_for(len(drawn.shares), self._width - 8)
        height = HEIGHT if self.screen.size.height >= 30 else LOW_HEIGHT
        top = f"{100 * max(drawn.shares):.0f} %"
        rows = columns(drawn.shares, height, cells)
        lines = []
        for index, row in enumerate(rows):
            label = top if index == 0 else "0 %" if index == height - 1 else ""
            lines.append(Text(f"{label:>5} ", self._style("text")).append(row, self._style("column")))
        return [*lines, Text(f"{'':6}{axis(drawn, cells)}  bit/w", self._style("text"))]

    def _bar(self, measured: Measured) -> Text:
        figures = self._figures(measured)
        cells = min(MAX_BAR, max(MIN_BAR, self._width - BESIDE_BAR - len(figures)))
        text = Text(f"{one_line(measured.kind).replace('_', ' '):<16} ", self._style("text"))
        text.append(f"{measured.bits_per_weight:5.2f} ", self._style("title"))
        parts = zip(BAR_GLYPHS, bar(measured, cells), ("column", "stored", "rail"), strict=True)
        for glyph, length, part in parts:
            text.append(glyph * length, self._style(part))
        return text.append(figures, self._style("text"))

    def _figures(self, measured: Measured) -> str:
        """As many as there is room for, as wide in every line."""
        parts = [f"entropy {measured.entropy_bits_per_weight:.2f}"]
        if self._width >= ALL_FIGURES:
            parts.append(f"Huffman {measured.huffman_bits_per_weight:.2f}")
            parts.append(f"{format.compact(measured.weights):>7}")
        return f" {' · '.join(parts)}"

    def _shares(self, total: Measured) -> Text:
        """Streams of adaptive planes by name, levels of bitmaps by their bits."""
        parts = [f"{_stream(name)} {100 * share:.1f} %" for name, share in total.share.items()]
        return Text(f"Weights by stream: {' · '.join(parts)}" if parts else "", self._style("text"))


def _stream(name: str) -> str:
    return (
        f"{name} bit" if name.isdigit() else {"plane": "planes", "short": "short codes"}.get(name, f"{name}s")
    )
