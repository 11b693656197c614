"""What products and corrections of one decode step take, by linear kind."""

from __future__ import annotations

import time

import numpy as np

from runtime.engine.cpu_linear import CpuLinear
from runtime.layers.base import LINEAR_KINDS, LinearKind


class StepTimer:
    """Sums over all blocks of one step, in seconds; the rest of `step_s` went into small operations."""

    def __init__(self) -> None:
        self.product_s: dict[LinearKind, float] = dict.fromkeys(LINEAR_KINDS, 0.0)
        self.correction_s: dict[LinearKind, float] = dict.fromkeys(LINEAR_KINDS, 0.0)
        self.head_s = self.step_s = 0.0

    def run(self, kind: LinearKind, linear: CpuLinear) -> tuple[np.ndarray, np.ndarray]:
        """Product bits and correction of a linear, both timed."""
        started = time.perf_counter()
        lost = linear.correct()
        between = time.perf_counter()
        product = linear.product()
        ended = time.perf_counter()
        self.correction_s[kind] += between - started
        self.product_s[kind] += ended - between
        return product, lost
