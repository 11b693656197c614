"""What products and corrections of one decode step take, by linear kind."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from runtime.engine.cpu_linear import CpuLinear
from runtime.layers.base import LINEAR_KINDS, LinearKind


class StepTimer:
    """Seconds of every call, block by block; what is left of `step_s` went into small operations."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self.products: dict[LinearKind, list[float]] = {kind: [] for kind in LINEAR_KINDS}
        self.corrections: dict[LinearKind, list[float]] = {kind: [] for kind in LINEAR_KINDS}
        self.head_s = self.step_s = 0.0

    @property
    def correction_s(self) -> float:
        """All corrections of the step."""
        return sum(map(sum, self.corrections.values()))

    def run(self, kind: LinearKind, linear: CpuLinear) -> tuple[np.ndarray, np.ndarray]:
        """Product bits and correction of a linear, both timed."""
        started = self._clock()
        lost = linear.correct()
        between = self._clock()
        product = linear.product()
        ended = self._clock()
        self.corrections[kind].append(between - started)
        self.products[kind].append(ended - between)
        return product, lost
