"""Progress of long work: one object that reports, computes rate and time left, and carries cancellation."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from runtime.errors import Interrupted
from runtime.protocol.events import Event, Progress

MIN_INTERVAL_S = 0.1
# Jobs that leave finished pieces on disk for their next run.
RESUMABLE = frozenset({"prepare", "int8x_encode", "eval_bbh", "eval_mt_bench", "eval_judge", "bench_decdec"})


class JobContext:
    """Handed to every long job. `emit` sends an event; `cancelled` is polled at safe points."""

    def __init__(self, job: str, emit: Callable[[Event], None], cancelled: Callable[[], bool]) -> None:
        self.job, self.emit, self._cancelled = job, emit, cancelled
        self._step, self._started, self._first, self._last = "", 0.0, 0, 0.0

    @classmethod
    def silent(cls, job: str = "job") -> JobContext:
        """A context that reports to nobody and is never cancelled."""
        return cls(job, lambda event: None, lambda: False)

    def check(self) -> None:
        """Raise Interrupted if the user asked to stop."""
        if self._cancelled():
            raise Interrupted(continues=self.job in RESUMABLE)

    def progress(
        self, step: str, done: int, total: int, unit: str, note: str = "", data: dict[str, Any] | None = None
    ) -> bool:
        """Report `done` of `total` units (0: unknown) of a step; throttled, but the last always goes out.

        Tells whether it went out: `data` that did not is the caller's to send again.
        """
        self.check()
        now = time.monotonic()
        if step != self._step:
            self._step, self._started, self._first = step, now, done
        elif now - self._last < MIN_INTERVAL_S and done != total:
            return False
        self._last = now
        rate = self._rate(done, now)
        eta = (total - done) / rate if rate and total else None
        self.emit(Progress(self.job, step, done, total, unit, rate, eta, note, data))
        return True

    def _rate(self, done: int, now: float) -> float | None:
        elapsed = now - self._started
        moved = done - self._first
        return moved / elapsed if moved > 0 and elapsed > 1.0 else None
