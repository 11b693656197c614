"""The tuned path: which table holds from which slowdown on, and what that promises."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from itertools import compress, pairwise

from app.slider.position import DETENTS, MAX_SLOWDOWN_PCT
from runtime.protocol.events import KChunk, SlowdownPoint

# Corrections that cost less than this are not told from none by any timer, so they count as free.
FREE_PCT = 0.05
_STEP_PCT = 0.1


@dataclass(frozen=True, slots=True)
class Path:
    """Points ascending in slowdown; none where nothing was tuned."""

    points: tuple[SlowdownPoint, ...] = ()

    def at(self, pct: float) -> SlowdownPoint:
        """The point whose table is in force at a position."""
        index = bisect_right([point.slowdown_pct for point in self.points], pct)
        return self.points[index - 1] if index else SlowdownPoint(0.0, KChunk())

    @property
    def free_until(self) -> float:
        """End of the free region in percent: up to it corrections hide behind the base product; 0: none."""
        free = [point for point in self.points if point.slowdown_pct <= FREE_PCT and point.k_chunk.total]
        costly = [point.slowdown_pct for point in self.points if point.slowdown_pct > FREE_PCT]
        if not free:
            return 0.0
        return costly[0] if costly else MAX_SLOWDOWN_PCT

    @property
    def first_gain(self) -> float | None:
        """The smallest slowdown that corrects anything; None without such a point."""
        return next((point.slowdown_pct for point in self.points if point.k_chunk.total), None)

    @property
    def detents(self) -> tuple[float, ...]:
        """0, and the detents at which another table is in force than at the one before."""
        tables = [self.at(detent).k_chunk for detent in DETENTS]
        changes = (new != old for old, new in pairwise(tables))
        return (DETENTS[0], *compress(DETENTS[1:], changes))

    def next_detents(self, pct: float) -> tuple[float, ...]:
        """Where a step by detents from a position may end: where the table changes, or at 0."""
        now = self.at(pct).k_chunk
        return tuple(detent for detent in self.detents if not detent or self.at(detent).k_chunk != now)

    @property
    def last_free(self) -> float:
        """The largest position, in steps of 0.1, that costs nothing."""
        end = self.free_until
        if not end or end == MAX_SLOWDOWN_PCT:
            return end
        return round(max(0, math.ceil(end / _STEP_PCT - 1e-6) - 1) * _STEP_PCT, 1)

    @property
    def stops(self) -> tuple[float, ...]:
        """One position for every table that costs something, and the last free one before them."""
        costly = [point.slowdown_pct for point in self.points if point.slowdown_pct > FREE_PCT]
        stops = {round(math.ceil(pct / _STEP_PCT - 1e-6) * _STEP_PCT, 1) for pct in costly}
        return tuple(sorted({self.last_free, *(pct for pct in stops if pct <= MAX_SLOWDOWN_PCT)}))
