"""What every screen shares: breakpoints, and a place for engine events."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from textual.screen import Screen

from runtime.protocol.events import Event

if TYPE_CHECKING:
    from app.chat.app import ChatApp

WIDTHS = [(0, "-tiny-width"), (30, "-narrow"), (80, "-wide")]
# For screens that need fewer lines when there are very few.
LOW_HEIGHTS = [(0, "-tiny-height"), (8, "-low"), (13, "-short"), (24, "-tall")]


class EngineScreen(Screen[None]):
    """A screen that hears every engine event, after the session has taken it."""

    HORIZONTAL_BREAKPOINTS: list[tuple[int, str]] | None = WIDTHS
    VERTICAL_BREAKPOINTS: list[tuple[int, str]] | None = [  # noqa: RUF012
        (0, "-tiny-height"),
        (8, "-short"),
        (24, "-tall"),
    ]

    @property
    def chat_app(self) -> ChatApp:
        """The application with its type."""
        return cast("ChatApp", self.app)

    def engine_event(self, event: Event) -> None:
        """React to an event."""
