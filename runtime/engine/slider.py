"""From a slider position to the table in force, and from step times to the measured slowdown."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from statistics import median

from runtime.protocol.events import KChunk, SlowdownPoint

RECENT_STEPS = 48


class TunedPath:
    """The tuner's path: which table holds from which slowdown on."""

    def __init__(self, points: Sequence[SlowdownPoint]) -> None:
        """points ascending in slowdown_pct; empty means untuned: every position gives the zero table."""
        self.points = tuple(points)
        self._starts = [point.slowdown_pct for point in self.points]
        if self._starts != sorted(self._starts):
            raise ValueError("a tuned path must ascend")

    def at(self, pct: float) -> KChunk:
        """The last table whose slowdown does not exceed `pct`."""
        index = bisect_right(self._starts, pct) - 1
        return self.points[index].k_chunk if index >= 0 else KChunk()


class MeasuredSlowdown:
    """Share of recent steps that went into corrections, as percent of what the step took without them."""

    def __init__(self) -> None:
        self._samples: deque[float] = deque(maxlen=RECENT_STEPS)

    def reset(self) -> None:
        """Forget: the table has changed."""
        self._samples.clear()

    def add(self, step_s: float, correction_s: float) -> None:
        """One step's whole time and the part of it spent on corrections, in seconds."""
        if step_s > correction_s:
            self._samples.append(100.0 * correction_s / (step_s - correction_s))

    @property
    def pct(self) -> float | None:
        """Median over recent steps; None until there is one."""
        return median(self._samples) if self._samples else None
