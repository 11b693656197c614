"""The part of the app that sees to its end: the terminal is as it was, and nobody is shown a traceback."""

from __future__ import annotations

import asyncio
import contextlib
import signal

from rich.text import Text
from textual.app import App

from app import unexpected
from app.text import one_line

# A shell tells the signal that ended a program by this and its number.
ENDED = 128


class LeavingApp(App[None]):
    """Ends in order when it is told to by a signal, and with one sentence after a failure nobody foresaw."""

    _failed = False

    def on_mount(self) -> None:
        """Without this a SIGTERM would leave the terminal to the shell as a screen without a cursor."""
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._terminated)

    def _terminated(self) -> None:
        self.exit(return_code=ENDED + signal.SIGTERM)

    def _fatal_error(self) -> None:
        """In place of a traceback with the values of all variables. Later failures follow from the first."""
        error, told = self._exception, self._failed
        self._failed = True
        if error is not None and not told:
            self.panic(Text(one_line(unexpected.told(error))))
