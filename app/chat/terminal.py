"""The part of the app that minds the terminal: its size, that it is given back, that no traceback is seen."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Sequence

from rich.text import Text
from textual.app import App
from textual.events import Resize
from textual.filter import LineFilter
from textual.geometry import Size
from textual.notifications import SeverityLevel

from app import unexpected
from app.chat.safe_lines import SafeLines
from app.text import neutralise, one_line

# A shell tells the signal that ended a program by this and its number.
ENDED = 128
# Signals of a window that is being dragged may overtake each other, so that an older size is heard last.
LOOK_AGAIN_S = 0.2


class TerminalApp(App[None]):
    """Ends in order when it is told to by a signal, and with one sentence after a failure nobody foresaw."""

    _failed = False
    _safe_lines = SafeLines()

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Textual's filters, and ours behind them."""
        return [*super().get_line_filters(), self._safe_lines]

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = False,
    ) -> None:
        """A note. Its text is never markup, and drives no terminal."""
        message, title = neutralise(message), neutralise(title)
        super().notify(message, title=title, severity=severity, timeout=timeout, markup=False)

    def on_mount(self) -> None:
        """Without this a SIGTERM would leave the terminal to the shell as a screen without a cursor."""
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._terminated)

    def on_resize(self) -> None:
        """See a little later whether this was the last word."""
        if not self.is_headless:
            self.set_timer(LOOK_AGAIN_S, self._look_again)

    def _look_again(self) -> None:
        size = _terminal_size()
        if size is not None and size != self.size:
            self.post_message(Resize(size, size))

    def _terminated(self) -> None:
        self.exit(return_code=ENDED + signal.SIGTERM)

    def _fatal_error(self) -> None:
        """In place of a traceback with the values of all variables. Later failures follow from the first."""
        error, told = self._exception, self._failed
        self._failed = True
        if error is not None and not told:
            self.panic(Text(one_line(unexpected.told(error))))


def _terminal_size() -> Size | None:
    if sys.__stdin__ is None:
        return None
    with contextlib.suppress(OSError, ValueError):
        return Size(*os.get_terminal_size(sys.__stdin__.fileno()))
    return None
