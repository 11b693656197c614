"""How many tokens/s a position would bring, foretold from what was measured and from the tuned path."""

from __future__ import annotations

from app.slider.path import Path
from app.slider.position import Position
from runtime.protocol.events import Stats

# One report counts for a fifth: the final one is the mean of an answer in which the slider may have moved.
_SHARE = 0.2
# Before so many tokens a speed is mostly the clock's noise.
MIN_TOKENS = 4
# Promises below this are no measure of what corrections really cost.
TELLING_PCT = 1.0
MIN_EXCESS, MAX_EXCESS = 0.1, 10.0


class Speeds:
    """Learns the speed without corrections, and that of lossless, in tokens/s; None until known.

    `excess`: how many times what the path promises corrections cost of a whole token.
    """

    def __init__(self) -> None:
        self.base: float | None = None
        self.lossless: float | None = None
        self.excess: float | None = None

    def learn(self, stats: Stats, path: Path) -> None:
        """Take a report of tokens that were all written at one position."""
        speed, cost = stats.decode_tokens_per_s, stats.slowdown_measured_pct
        if stats.completion_tokens < MIN_TOKENS or speed <= 0:
            return
        if stats.lossless:
            self.lossless = _mixed(self.lossless, speed)
        elif cost is not None:
            self.base = _mixed(self.base, speed * (1 + cost / 100))
            if (found := excess(cost, path.at(stats.slowdown_target_pct).slowdown_pct)) is not None:
                self.excess = _mixed(self.excess, found)

    def at(self, position: Position, path: Path) -> float | None:
        """About how many tokens/s a position brings."""
        if position.lossless:
            return self.lossless
        cost = path.at(position.pct).slowdown_pct * (1.0 if self.excess is None else self.excess)
        return self.base / (1 + cost / 100) if self.base else None


def excess(measured_pct: float, promised_pct: float) -> float | None:
    """How many times the promise was measured; None where so little was promised that it would be noise."""
    if promised_pct < TELLING_PCT:
        return None
    return min(max(measured_pct / promised_pct, MIN_EXCESS), MAX_EXCESS)


def _mixed(old: float | None, new: float) -> float:
    return new if old is None else old + _SHARE * (new - old)
