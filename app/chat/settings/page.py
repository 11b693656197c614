"""What every page of the settings screen has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.chat.app import ChatApp


@dataclass(frozen=True, slots=True)
class Row:
    """A line: what it is, what is set, what it means. `name` is the page's own; `own`: not as usual."""

    name: str
    title: str
    value: str
    help: str
    own: bool = False


class Page:
    """Rows of one section. `changed` is called when they have to be drawn again."""

    title = ""
    keys = ""

    def __init__(self, app: ChatApp, changed: Callable[[], None]) -> None:
        self.app, self.changed = app, changed

    def rows(self) -> list[Row]:
        """Its lines as they are now."""
        raise NotImplementedError

    def enter(self, name: str) -> None:
        """Edit a row."""
        raise NotImplementedError

    def step(self, name: str, direction: int) -> None:
        """To the next value of a row, where it has such."""

    def reset(self, name: str) -> None:
        """Back to what is usual."""

    def begin(self) -> None:
        """The page is shown for the first time."""

    def warn(self, text: str) -> None:
        """Something was not done."""
        self.app.notify(text, severity="warning", markup=False)
