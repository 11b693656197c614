"""A text area: cursor, deletions and line ends never fall within what a reader takes for one character."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from textual.document._document import DocumentBase, EditResult, Location
from textual.document._wrapped_document import WrappedDocument
from textual.expand_tabs import get_tab_widths
from textual.widgets import TextArea

from app.graphemes import at_cell, breaks, left_of, right_of, start_of


@dataclass(frozen=True, slots=True)
class _Broken:
    """Where a line is broken, and the cells of its tabs."""

    offsets: list[int]
    tab_widths: list[int]


class GraphemeWrapped(WrappedDocument):
    """Lines are broken between graphemes, and found again by them."""

    def __init__(self, document: DocumentBase, width: int = 0, tab_width: int = 4) -> None:
        self._known: dict[str, _Broken] = {}
        super().__init__(document, width, tab_width)

    def wrap(self, width: int, tab_width: int | None = None) -> None:
        """Break every line to fit into so many cells; 0 breaks none. What is known is not looked at."""
        tab_width = tab_width or self._tab_width
        before = self._known if (width, tab_width) == (self._width, self._tab_width) else {}
        self._width, self._tab_width = width, tab_width
        lines = self.document.lines
        self._known = {line: before.get(line) or self._broken(line) for line in lines}
        self._wrap_offsets = [self._known[line].offsets for line in lines]
        self._tab_width_cache = [self._known[line].tab_widths for line in lines]
        heights = [len(offsets) + 1 for offsets in self._wrap_offsets]
        tops = accumulate(heights, initial=0)
        self._line_index_to_offsets = [
            list(range(top, top + height)) for top, height in zip(tops, heights, strict=False)
        ]
        self._offset_to_line_info = [
            (line, section) for line, height in enumerate(heights) for section in range(height)
        ]

    def _broken(self, line: str) -> _Broken:
        tab_widths = [cells for _, cells in get_tab_widths(line, self._tab_width)]
        return _Broken(breaks(line, self._width, tab_widths), tab_widths)

    def wrap_range(self, start: Location, old_end: Location, new_end: Location) -> None:
        """Break the lines again after an edit: those that did not change are known."""
        self.wrap(self._width)

    def get_target_document_column(self, line_index: int, x_offset: int, y_offset: int) -> int:
        """The column that is drawn over a cell of a section of a line."""
        sections = self.get_sections(line_index)
        if any("\t" in section for section in sections):
            return super().get_target_document_column(line_index, x_offset, y_offset)
        section, before = sections[y_offset], sum(map(len, sections[: y_offset % len(sections)]))
        column = at_cell(section, x_offset)
        last = y_offset in (-1, len(sections) - 1)
        return before + (column if last else min(column, left_of(section, len(section))))


class GraphemeArea(TextArea):
    """Whatever sets the cursor, sets it between two graphemes; whatever deletes, deletes whole ones."""

    @property
    def wrapped_document(self) -> WrappedDocument:
        """The view of the document that breaks its lines."""
        return self._wrapped

    @wrapped_document.setter
    def wrapped_document(self, value: WrappedDocument) -> None:
        self._wrapped = GraphemeWrapped(value.document, tab_width=value._tab_width)

    def get_cursor_left_location(self) -> Location:
        """One grapheme to the left, or to the end of the line above."""
        row, column = self.cursor_location
        return (row, left_of(self.document[row], column)) if column else super().get_cursor_left_location()

    def get_cursor_right_location(self) -> Location:
        """One grapheme to the right, or to the beginning of the line below."""
        row, column = self.cursor_location
        line = self.document[row]
        if column < len(line):
            return row, right_of(line, column)
        return super().get_cursor_right_location()

    def clamp_visitable(self, location: Location) -> Location:
        """The nearest place before a location where a cursor may stand."""
        row, column = super().clamp_visitable(location)
        return row, start_of(self.document[row], column)

    def delete(self, start: Location, end: Location, **options: Any) -> EditResult:
        """Delete between two places, with all of the graphemes that they fall into."""
        (row, column), (last_row, last) = sorted((start, end))
        line = self.document[last_row] if last_row < self.document.line_count else ""
        inside = 0 < last < len(line) and start_of(line, last) != last
        first = start_of(self.document[row], column) if row < self.document.line_count else column
        return super().delete((row, first), (last_row, right_of(line, last) if inside else last), **options)
