"""How fast pieces of an answer come: over the last moments, and since the first one. Light: no torch."""

from __future__ import annotations

from collections import deque

# Long enough to be calm, short enough that a move of the slider shows.
WINDOW_S = 1.5


class Pace:
    """Takes the time in seconds of every piece, which may be a token or several."""

    def __init__(self) -> None:
        self._recent: deque[float] = deque()
        self.first: float | None = None
        self.count = 0

    def push(self, now: float) -> None:
        """One more piece."""
        self.first = now if self.first is None else self.first
        self.count += 1
        self._recent.append(now)
        while len(self._recent) > 2 and now - self._recent[0] > WINDOW_S:
            self._recent.popleft()

    def recent(self, per_piece: float = 1.0) -> float:
        """Tokens/s over the last moments, with so many tokens in a piece; 0 while unknown."""
        if not self._recent:
            return 0.0
        return _per_second((len(self._recent) - 1) * per_piece, self._recent[-1] - self._recent[0])

    def mean(self, tokens: float) -> float:
        """Tokens/s since the first piece, of so many tokens; 0 while unknown."""
        return 0.0 if self.first is None else _per_second(tokens - 1, self._recent[-1] - self.first)


def _per_second(steps: float, seconds: float) -> float:
    return steps / seconds if steps > 0 and seconds > 0 else 0.0
