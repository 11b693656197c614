"""What each kind of linear costs inside a real decode step, for the tuner.

Measured in whole steps, not in loops over one kind: there the weights would stay in the cache and every
product would look cheaper than it is.
"""

from __future__ import annotations

import sys
import time

from runtime.engine.load import load_engine
from runtime.layers.base import LinearKind
from runtime.progress import JobContext
from runtime.protocol.commands import Load
from runtime.protocol.events import KChunk

PROMPT = tuple(range(1, 33))
STEPS = 24
WARM_STEPS = 4
CONTEXT = 512
LIMIT = 1024
# Between blocks of one kind the same call differs by less than this on an idle machine.
SPREAD = 1.2
# Where it is fine enough, the thread's own processor time: it stands still while others have the core.
CLOCK = time.thread_time if sys.platform == "linux" else time.perf_counter


class StepMeasurer:
    """Costs inside whole decode steps; every k_chunk is measured once, for all kinds together."""

    def __init__(self, model: str, base: str, ctx: JobContext) -> None:
        loaded = load_engine(Load(model, base, CONTEXT), ctx, keep_lossless=False)  # type: ignore[arg-type]
        self._engine, self._ctx = loaded.engine, ctx
        self._costs: dict[int, tuple[dict[LinearKind, float], dict[LinearKind, float]]] = {}

    def base_us(self, kind: LinearKind) -> float:
        """Microseconds of one base product of this kind."""
        return self._cost(0)[0][kind]

    def corrected_us(self, kind: LinearKind, k_chunk: int) -> float:
        """Microseconds of a product with k_chunk channels per 1024 corrected.

        What the call and the clock cost without any correction is part of every step and does not count.
        """
        added = self._cost(k_chunk)[1][kind] - self._cost(0)[1][kind]
        return self.base_us(kind) + max(added, 0.0)

    def limit(self, kind: LinearKind) -> int:
        """Largest k_chunk: every channel."""
        return LIMIT

    def _cost(self, k_chunk: int) -> tuple[dict[LinearKind, float], dict[LinearKind, float]]:
        if k_chunk not in self._costs:
            self._costs[k_chunk] = self._measure(k_chunk)
        return self._costs[k_chunk]

    def _measure(self, k_chunk: int) -> tuple[dict[LinearKind, float], dict[LinearKind, float]]:
        """(product, correction) microseconds per linear."""
        engine = self._engine
        engine.truncate(0)
        engine.prefill(PROMPT, self._ctx.check)
        engine.set_k_chunk(KChunk(k_chunk, k_chunk, k_chunk, k_chunk))
        timers = [engine.time_step(PROMPT[i % len(PROMPT)], CLOCK) for i in range(WARM_STEPS + STEPS)][
            WARM_STEPS:
        ]
        self._ctx.check()
        kinds = timers[0].products
        return (
            {kind: 1e6 * typical([t.products[kind] for t in timers]) for kind in kinds},
            {kind: 1e6 * typical([t.corrections[kind] for t in timers]) for kind in kinds},
        )


def typical(steps: list[list[float]]) -> float:
    """What a call takes when nothing disturbs it, from the times of every block in every step.

    The mean over blocks of each call's lowest octile; but not more than SPREAD times the lowest hundredth of
    all calls, for beside another busy program even octiles are disturbed. That only makes calls slower,
    products on two threads more than corrections on one: a table tuned by means would correct far too much.
    """
    octiles = [sorted(times)[len(times) // 8] for times in zip(*steps, strict=True)]
    every = sorted(time for step in steps for time in step)
    return min(sum(octiles) / len(octiles), SPREAD * every[len(every) // 100])
