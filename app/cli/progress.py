"""Progress on stderr: plain lines for a log, one line rewritten in place for a terminal. No escape codes."""

from __future__ import annotations

import shutil
import sys
import time
from typing import TextIO

from app import format
from app.text import one_line
from runtime.protocol.events import Event, Progress

TERMINAL_INTERVAL_S = 0.25
# A log gets a line after this time at first, and twice as rarely each time up to the maximum.
LOG_INTERVAL_S, MAX_LOG_INTERVAL_S = 1.0, 16.0


class ProgressPrinter:
    """Prints Progress events; every step's first and last report is always shown."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._rewrites = self._stream.isatty()
        self._interval = TERMINAL_INTERVAL_S if self._rewrites else LOG_INTERVAL_S
        self._step: tuple[str, str] | None = None
        self._printed_at = 0.0
        self._width = 0

    def __call__(self, event: Event) -> None:
        """Take any event; only progress is printed."""
        if not isinstance(event, Progress):
            return
        last = bool(event.total and event.done >= event.total)
        step = (event.job, event.step)
        if step != self._step:
            self._new_step(step)
        elif not last and time.monotonic() - self._printed_at < self._interval:
            return
        self._print(one_line(format.progress_line(event)), last)

    def close(self) -> None:
        """End a line that is still being rewritten."""
        if self._width:
            self._stream.write("\n")
            self._stream.flush()
            self._width = 0

    def _new_step(self, step: tuple[str, str]) -> None:
        self.close()
        self._step = step
        self._interval = TERMINAL_INTERVAL_S if self._rewrites else LOG_INTERVAL_S

    def _print(self, line: str, last: bool) -> None:
        self._printed_at = time.monotonic()
        if not self._rewrites:
            self._interval = min(2 * self._interval, MAX_LOG_INTERVAL_S)
            self._stream.write(line + "\n")
        else:
            line = line[: shutil.get_terminal_size().columns - 1]
            self._stream.write("\r" + line.ljust(self._width))
            self._width = len(line)
        self._stream.flush()
        if last:
            self.close()
