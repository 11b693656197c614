"""How many tokens/s a position would bring, foretold from what was measured and from the tuned path."""

from __future__ import annotations

from app.slider.path import Path
from app.slider.position import Position
from runtime.protocol.events import Stats

# One report counts for a fifth: the final one is the mean of an answer in which the slider may have moved.
_SHARE = 0.2
# Before so many tokens a speed is mostly the clock's noise.
MIN_TOKENS = 4


class Speeds:
    """Learns the speed without corrections, and that of lossless, in tokens/s; None until known."""

    def __init__(self) -> None:
        self.base: float | None = None
        self.lossless: float | None = None

    def learn(self, stats: Stats) -> None:
        """Take a report of tokens that were all written at one position."""
        speed, cost = stats.decode_tokens_per_s, stats.slowdown_measured_pct
        if stats.completion_tokens < MIN_TOKENS or speed <= 0:
            return
        if stats.lossless:
            self.lossless = _mixed(self.lossless, speed)
        elif cost is not None:
            self.base = _mixed(self.base, speed * (1 + cost / 100))

    def at(self, position: Position, path: Path) -> float | None:
        """About how many tokens/s a position brings."""
        if position.lossless:
            return self.lossless
        return self.base / (1 + path.at(position.pct).slowdown_pct / 100) if self.base else None


def _mixed(old: float | None, new: float) -> float:
    return new if old is None else old + _SHARE * (new - old)
