"""Moving through the transcript, wherever the focus is."""

from __future__ import annotations

from textual.binding import Binding
from textual.screen import Screen

from app.chat.widgets.transcript import Transcript

SCROLL_BINDINGS = (
    Binding("pageup", "page(-1)", "Page up", show=False, priority=True),
    Binding("pagedown", "page(1)", "Page down", show=False, priority=True),
    Binding("ctrl+up", "scroll(-1)", "Line up", show=False, priority=True),
    Binding("ctrl+down", "scroll(1)", "Line down", show=False, priority=True),
)


class ScrollActions(Screen[None]):
    """The actions behind SCROLL_BINDINGS, for a screen that holds a Transcript."""

    def action_page(self, direction: int) -> None:
        """Scroll the transcript by a page."""
        transcript = self.query_one(Transcript)
        (transcript.scroll_page_up if direction < 0 else transcript.scroll_page_down)(animate=False)

    def action_scroll(self, direction: int) -> None:
        """Scroll the transcript by a line."""
        self.query_one(Transcript).scroll_relative(y=direction, animate=False)

    def action_follow(self) -> None:
        """To the newest text."""
        self.query_one(Transcript).follow()
