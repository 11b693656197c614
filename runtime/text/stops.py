"""Stop strings in a stream: held back while they could still be one, never shown, never lost."""

from __future__ import annotations

from collections.abc import Iterable


class StopMatcher:
    """`push` text, show what it returns, stop when `hit`; `finish` returns what was held back."""

    def __init__(self, stops: Iterable[str]) -> None:
        self._stops = tuple(stop for stop in stops if stop)
        self._held = ""
        self.hit = False

    def push(self, text: str) -> str:
        """Text that certainly is no part of a stop string; after a hit, always empty."""
        if self.hit or not self._stops:
            return "" if self.hit else text
        self._held += text
        found = [at for stop in self._stops if (at := self._held.find(stop)) >= 0]
        if found:
            self.hit = True
            return self._release(min(found), drop=True)
        return self._release(len(self._held) - self._possible_start())

    def finish(self) -> str:
        """The held text: the answer ended without the stop string that it looked like."""
        return self._release(len(self._held))

    def _possible_start(self) -> int:
        """Length of the longest tail that is a proper beginning of some stop string."""
        longest = max(map(len, self._stops)) - 1
        for length in range(min(longest, len(self._held)), 0, -1):
            tail = self._held[-length:]
            if any(stop.startswith(tail) for stop in self._stops):
                return length
        return 0

    def _release(self, length: int, *, drop: bool = False) -> str:
        text, self._held = self._held[:length], "" if drop else self._held[length:]
        return text
