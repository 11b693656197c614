"""How patient a download is, and how long it waits before it tries again."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from runtime.download.errors import BusyError, StalledError, UnreachableError


@dataclass(frozen=True, slots=True)
class Limits:
    """`tries`: attempts in a row that bring nothing new before it is given up.

    An answer must begin within `answer_s`; then at least `window_bytes` must come in every `window_s`, or the
    connection is made anew. Waits double from `first_wait_s` to `longest_wait_s`, each by a random factor of
    0.5 to 1.5; what the server asks for instead is kept up to `longest_asked_s`. All in seconds.
    """

    tries: int = 8
    answer_s: float = 45.0
    window_s: float = 20.0
    window_bytes: int = 4096
    first_wait_s: float = 1.0
    longest_wait_s: float = 30.0
    longest_asked_s: float = 300.0
    connections: int = 4


@dataclass(slots=True)
class Attempts:
    """Counts attempts that brought nothing. `best`: the most bytes that were ever there."""

    limits: Limits
    best: int
    dice: Callable[[], float] = random.random
    failures: int = field(default=0, init=False)

    def wait_after(self, error: UnreachableError, have: int) -> float:
        """Seconds to wait before the next attempt; raises the error when it was the last."""
        # A server that feeds a byte from time to time would else never be given up.
        least = self.limits.window_bytes if isinstance(error, StalledError) else 1
        self.failures = 1 if have >= self.best + least else self.failures + 1
        self.best = max(self.best, have)
        if self.failures >= self.limits.tries:
            raise error
        asked = error.after_s if isinstance(error, BusyError) else 0.0
        usual = min(self.limits.first_wait_s * 2 ** (self.failures - 1), self.limits.longest_wait_s)
        return min(asked, self.limits.longest_asked_s) or usual * (0.5 + self.dice())


def retry_after(value: str, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> float:
    """Seconds that a Retry-After header asks for, as a number or as a date; 0 for none, or for nonsense."""
    value = value.strip()
    if value.isascii() and value.isdigit():
        return float(value[:9])
    try:
        moment = parsedate_to_datetime(value)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return max(0.0, (moment - now()).total_seconds())
    except (ValueError, OverflowError):  # OverflowError for years and zones beyond all numbers
        return 0.0
