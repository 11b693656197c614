"""Ends work in the middle when its time is over: even within one match of a regular expression."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType


class _TimeUp(BaseException):
    """The time is over: no error, so that nothing within takes it for its own. Never leaves `within`."""


def can_interrupt() -> bool:
    """Whether there is such a limit here: Windows has no timer, and signals reach only the main thread."""
    return hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()


def within(seconds: float, work: Callable[[], None]) -> bool:
    """Do the work for so much processor time at most; whether it came to its end.

    Only for work that may end anywhere, and only where `can_interrupt`. Processor time, because a busy
    machine is no reason to do less; a match looks for signals while it runs, and holds every thread.
    """
    working = True

    def end(signum: int, frame: FrameType | None) -> None:
        if working:
            raise _TimeUp

    # The handler stays: without one, a signal that comes late would end the program.
    signal.signal(signal.SIGVTALRM, end)
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
        work()
        working = False
    except _TimeUp:
        return False
    finally:
        working = False
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return True
