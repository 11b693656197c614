"""A line to type into whose cursor and deletions never fall within what a reader takes for one character."""

from __future__ import annotations

from textual.widgets import Input
from textual.widgets.input import Selection

from app.graphemes import right_of, start_of


class LineInput(Input):
    """An Input that moves and deletes by whole characters."""

    def validate_selection(self, selection: Selection) -> Selection:
        """Between two characters: a step into one goes through it."""
        start, end = super().validate_selection(selection)
        return Selection(self._whole(start, self.selection.start), self._whole(end, self.selection.end))

    def delete(self, start: int, end: int) -> None:
        """Delete between two places, with all of the characters that they fall into."""
        inside = start_of(self.value, end) != end
        super().delete(start_of(self.value, start), right_of(self.value, end) if inside else end)

    def _whole(self, at: int, before: int) -> int:
        start = start_of(self.value, at)
        return right_of(self.value, at) if start != at and at > before else start
