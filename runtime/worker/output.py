"""Stdout belongs to the protocol alone."""

from __future__ import annotations

import os
import sys
import threading

from runtime.protocol.events import Event
from runtime.protocol.lines import encode


class EventWriter:
    """Writes events to what was stdout; everything else that prints there lands on stderr."""

    def __init__(self) -> None:
        """Take over file descriptor 1, also from C libraries and child processes."""
        sys.stdout.flush()
        self._fd = os.dup(1)
        os.set_inheritable(self._fd, False)
        os.dup2(2, 1)
        sys.stdout = sys.stderr
        self._lock = threading.Lock()

    def write(self, event: Event) -> None:
        """One line, whole. Ends the worker (SystemExit) when nobody reads any more."""
        line = memoryview(encode(event))
        try:
            with self._lock:
                while line:
                    line = line[os.write(self._fd, line) :]
        except OSError as error:
            raise SystemExit(1) from error
