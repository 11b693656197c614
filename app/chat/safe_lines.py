"""The last look at every line before Textual writes it: only Textual itself drives the terminal."""

from __future__ import annotations

from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from app.text import without_unsafe


class SafeLines(LineFilter):
    """Takes out of a drawn line what no widget should have put there: controls, and links to click on.

    Widgets neutralise what they draw, so that it is seen; this is for what was forgotten, for instance text
    that was pasted into a field.
    """

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """The line with as many cells as before."""
        return [_safe(segment) for segment in segments]


def _safe(segment: Segment) -> Segment:
    text, style, control = segment
    if control:
        return segment
    clean = without_unsafe(text).replace("\n", "")
    linked = style is not None and style.link is not None
    if clean == text and not linked:
        return segment
    return Segment(clean, style.update_link(None) if style is not None and linked else style)
