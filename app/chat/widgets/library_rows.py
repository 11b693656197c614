"""One row of the list of models as a line of text, as wide as the list is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rich.text import Text

from app import format
from app.library.pulls import Pull, PullState
from app.library.rows import LeftoverRow, OfferRow, PullRow, ReadyRow, Row
from app.text import one_line

PARTS = ("title", "name", "facts", "good", "warn", "bad", "bar", "rail")
COMPONENTS = {f"library--{part}" for part in PARTS}
# From this width on a row shows more than name, size and state.
WIDE = 72
MIN_NAME, MAX_NAME = 14, 44
MIN_BAR, MAX_BAR = 6, 24
MARKS = {
    PullState.RUNNING: "▸",
    PullState.STOPPING: "▸",
    PullState.WAITING: "…",
    PullState.PAUSED: "‖",
    PullState.FAILED: "✗",
}


@dataclass(frozen=True, slots=True)
class RowPainter:
    """Draws rows of a list whose names take `name_cells`."""

    style: Callable[[str], str]
    width: int
    name_cells: int

    @classmethod
    def fitting(cls, style: Callable[[str], str], width: int, names: list[str]) -> RowPainter:
        """With room for the longest name, but not for the name alone."""
        longest = max((Text(one_line(name)).cell_len for name in names), default=0)
        most = min(MAX_NAME, max(MIN_NAME, width * 2 // 5))
        return cls(style, width, max(MIN_NAME, min(longest, most)))

    def paint(self, row: Row) -> Text:
        """The row's line."""
        match row:
            case ReadyRow():
                return self._ready(row)
            case PullRow():
                return self._pull(row.pull)
            case LeftoverRow():
                return self._leftover(row)
            case OfferRow():
                return self._offer(row)

    @property
    def _wide(self) -> bool:
        return self.width >= WIDE

    def _text(self, part: str, text: str) -> Text:
        return Text(text, self.style(part))

    def _line(self, mark: Text, name: str, cells: list[Text]) -> Text:
        label = self._text("name", one_line(name))
        label.truncate(self.name_cells, overflow="ellipsis", pad=True)
        line = Text("  ").join([Text.assemble(mark, " ", label), *(cell for cell in cells if cell)])
        line.no_wrap, line.overflow = True, "ellipsis"
        return line

    def _ready(self, row: ReadyRow) -> Text:
        mark = self._text("good", "●" if row.loaded else "✓")
        cells = [self._text("facts", f"{format.size(row.record.bytes):>8}")]
        if self._wide:
            cells.append(self._text("facts", f"{row.record.bits_per_weight:.2f} bit/w"))
            bases = ", ".join(map(one_line, row.record.record.get("bases", []))) or "lossless only"
            cells.append(self._text("facts", f"{bases:<12}"))
        cells.append(self._text("good", "tuned") if row.tuned else self._text("facts", "untuned"))
        if row.loaded:
            cells.append(self._text("good", "in use"))
        return self._line(mark, row.name, cells)

    def _offer(self, row: OfferRow) -> Text:
        size = format.size(row.download) if row.download else "?"
        cells = [self._text("facts", f"{size:>8}")]
        if self._wide:
            cells += [self._text("facts", text) for text in _extras(row)]
        if row.ready:
            cells.append(self._text("good", "✓ here"))
        if row.gated:
            cells.append(self._text("warn", "needs a token" if self._wide else "token"))
        if self._wide and row.licence:
            cells.append(self._text("facts", one_line(row.licence)))
        return self._line(Text(" "), row.label, cells)

    def _leftover(self, row: LeftoverRow) -> Text:
        size = self._text("facts", f"{format.size(row.leftover.bytes):>8}")
        what = "Enter makes it whole" if row.source else "Del deletes it"
        return self._line(
            self._text("warn", "!"), row.name, [size, self._text("warn", f"{row.leftover.state}: {what}")]
        )

    def _pull(self, pull: Pull) -> Text:
        failed = pull.state is PullState.FAILED
        mark = self._text("bad" if failed else "bar", MARKS.get(pull.state, " "))
        if failed:
            return self._line(mark, pull.name, [self._text("bad", one_line(pull.problem))])
        if not pull.active:
            return self._line(mark, pull.name, [self._text("facts", _resting(pull))])
        newest = pull.newest
        if newest is None:
            return self._line(mark, pull.name, [self._text("facts", "starting…")])
        title = "stopping…" if pull.state is PullState.STOPPING else format.step_title(newest.step)
        cells = [self._text("facts", title)]
        if newest.total:
            cells.append(self.bar(newest.done / newest.total))
        cells.append(self._text("facts", format.pace(newest)))
        return self._line(mark, pull.name, cells)

    def bar(self, share: float) -> Text:
        """A bar with its percentage, as long as the width allows."""
        cells = min(MAX_BAR, max(MIN_BAR, (self.width - self.name_cells) // 4))
        full = min(cells, int(cells * share))
        text = Text("━" * full, self.style("bar")).append("─" * (cells - full), self.style("rail"))
        return text.append(f" {int(100 * min(share, 1.0)):3d} %", self.style("facts"))


def _extras(row: OfferRow) -> list[str]:
    """What the origin of an offer tells besides its size."""
    if row.fit:
        return [f"memory {format.size(row.fit.memory):>8}"]
    return [f"{format.compact(row.downloads):>7} downloads"] if row.downloads else []


def _resting(pull: Pull) -> str:
    """`paused at Download, 43 %, 40.1 MB on disk`; the last part alone where an earlier run began it."""
    newest, parts = pull.newest, [pull.stage]
    if newest is not None and newest.total:
        parts[0] += f" at {format.step_title(newest.step)}"
        parts.append(f"{100 * newest.done // newest.total} %")
    if pull.here:
        parts.append(f"{format.size(pull.here)} on disk")
    return ", ".join(parts)
