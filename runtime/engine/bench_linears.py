"""What each kind of linear costs inside a real decode step, for the tuner.

Measured in whole steps, not in loops over one kind: there the weights would stay in the cache and every
product would look cheaper than it is.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass

from runtime.engine.cpu_loading import load_cpu_engine
from runtime.layers.base import LINEAR_KINDS, LinearKind
from runtime.progress import JobContext
from runtime.protocol.commands import Load
from runtime.protocol.events import KChunk
from runtime.tuner.costs import MAX_PCT
from runtime.tuner.measurer import NO_PROGRAMS, Launch, Launches

PROMPT = tuple(range(1, 33))
STEPS = 24
WARM_STEPS = 4
CONTEXT = 512
RUNGS = (4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
# Between blocks of one kind the same call differs by less than this on an idle machine.
SPREAD = 1.2
# Where it is fine enough, the thread's own processor time: it stands still while others have the core.
CLOCK = time.thread_time if sys.platform == "linux" else time.perf_counter


@dataclass(frozen=True, slots=True)
class StepCosts:
    """Microseconds per linear of each kind, in steps with one table, and of a whole step per block."""

    products: dict[LinearKind, float]
    corrections: dict[LinearKind, float]
    block: float


class StepMeasurer:
    """Implements `runtime.tuner.measurer.Measurer`; every table is measured once, for all kinds together."""

    # One takes as long as tens of steps.
    joint_trials = 4
    # The other parts of a step are not timed.
    rest_us = 0.0

    def __init__(self, model: str, base: str, ctx: JobContext) -> None:
        loaded = load_cpu_engine(Load(model, base, CONTEXT), ctx, keep_lossless=False)
        self._engine, self._ctx = loaded.engine, ctx
        self._steps: dict[KChunk, StepCosts] = {}
        self._curves: dict[LinearKind, dict[int, float]] = {kind: {} for kind in LINEAR_KINDS}

    def base_us(self, kind: LinearKind) -> float:
        """Microseconds of one base product of this kind."""
        return self._step(KChunk()).products[kind]

    @property
    def block_us(self) -> float:
        """Microseconds per block of a whole step without corrections, by the clock on the wall."""
        return self._step(KChunk()).block

    def launches(self, kind: LinearKind) -> tuple[Launch, ...]:
        """No choice: corrections run on the thread that needs them."""
        return (NO_PROGRAMS,)

    def rungs(self, kind: LinearKind, launch: Launch) -> tuple[int, ...]:
        """Up to every channel."""
        return RUNGS

    def corrected_us(self, kind: LinearKind, launch: Launch, k_chunk: int) -> float:
        """Microseconds of a product with k_chunk channels per 1024 corrected.

        What the call and the clock cost without any correction is part of every step and does not count.
        """
        if k_chunk not in self._curves[kind]:
            self._measure_rung(
                k_chunk, [o for o in LINEAR_KINDS if o == kind or self._affordable(o, k_chunk)]
            )
        return self.base_us(kind) + self._curves[kind][k_chunk]

    def _measure_rung(self, k_chunk: int, kinds: list[LinearKind]) -> None:
        """One step for all that still have a use for it: those too dear would only take time."""
        table = KChunk(**dict.fromkeys(kinds, k_chunk))
        for kind in kinds:
            self._curves[kind][k_chunk] = self._added(table, kind)

    def _affordable(self, kind: LinearKind, k_chunk: int) -> bool:
        """Whether, as far as is known, a smaller k_chunk alone stays within the largest slowdown."""
        known = [added for k, added in self._curves[kind].items() if k < k_chunk]
        return max(known, default=0.0) <= MAX_PCT / 100 * sum(map(self.base_us, LINEAR_KINDS))

    def table_pct(self, launches: Launches, table: KChunk) -> float:
        """What all corrections of a step take at this table, in percent of its products."""
        added = sum(self._added(table, kind) for kind in LINEAR_KINDS)
        return 100.0 * added / sum(map(self.base_us, LINEAR_KINDS))

    def _added(self, table: KChunk, kind: LinearKind) -> float:
        return max(self._step(table).corrections[kind] - self._step(KChunk()).corrections[kind], 0.0)

    def _step(self, table: KChunk) -> StepCosts:
        if table not in self._steps:
            self._steps[table] = self._measure(table)
        return self._steps[table]

    def _measure(self, table: KChunk) -> StepCosts:
        engine = self._engine
        engine.truncate(0)
        engine.prefill(PROMPT, self._ctx.check)
        engine.set_k_chunk(table)
        timers = [engine.time_step(PROMPT[i % len(PROMPT)], CLOCK) for i in range(WARM_STEPS + STEPS)][
            WARM_STEPS:
        ]
        self._ctx.check()
        return StepCosts(
            {kind: 1e6 * typical([t.products[kind] for t in timers]) for kind in LINEAR_KINDS},
            {kind: 1e6 * typical([t.corrections[kind] for t in timers]) for kind in LINEAR_KINDS},
            1e6 * min(t.step_s / len(t.products["qkv"]) for t in timers),
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
