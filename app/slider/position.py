"""Where the slider can stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runtime.protocol.commands import MAX_SLOWDOWN_PCT
from runtime.protocol.events import Stats

__all__ = ["DEFAULT_SLOWDOWN_PCT", "DETENTS", "FINE_STEP", "LOSSLESS", "MAX_SLOWDOWN_PCT", "Position"]

DETENTS = (0.0, 2.5, 5.0, 10.0, 20.0)
FINE_STEP = 0.5
# Where an untouched slider stands: most of the visible gain for a cost nobody notices.
DEFAULT_SLOWDOWN_PCT = 5.0


@dataclass(frozen=True, slots=True)
class Position:
    """Where the slider stands: a slowdown of `pct` percent, or the lossless stop beyond 20."""

    pct: float = 0.0
    lossless: bool = False

    def __post_init__(self) -> None:
        if not 0.0 <= self.pct <= MAX_SLOWDOWN_PCT:
            raise ValueError(f"slowdown must be within 0..{MAX_SLOWDOWN_PCT:g}, not {self.pct}")

    @classmethod
    def near(cls, pct: float) -> Position:
        """The position for any number: kept within 0..20 and rounded to 0.1."""
        return cls(round(min(max(pct, 0.0), MAX_SLOWDOWN_PCT), 1))

    @classmethod
    def of(cls, stats: Stats) -> Position:
        """Where the engine says that it stands."""
        return LOSSLESS if stats.lossless else cls.near(stats.slowdown_target_pct)

    def step(
        self, direction: int, fine: bool, has_lossless: bool, stops: Sequence[float] = DETENTS
    ) -> Position:
        """The neighbour among `stops`, or half a percent further; right of the last lies lossless."""
        if self.lossless:
            return Position(MAX_SLOWDOWN_PCT) if direction < 0 else self
        last = MAX_SLOWDOWN_PCT if fine else max(stops, default=0.0)
        if direction > 0 and self.pct >= last:
            return LOSSLESS if has_lossless else self
        moved = self.pct + direction * FINE_STEP if fine else _neighbour(self.pct, direction, stops)
        return Position.near(moved)


LOSSLESS = Position(MAX_SLOWDOWN_PCT, lossless=True)


def _neighbour(pct: float, direction: int, stops: Sequence[float]) -> float:
    beyond = [d for d in stops if (d - pct) * direction > 1e-6]
    return (min if direction > 0 else max)(beyond, default=pct)
