"""What each kind of linear costs inside a real decode step, for the tuner.

Measured in whole steps, not in loops over one kind: there the weights would stay in the cache and every
product would look cheaper than it is.
"""

from __future__ import annotations

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
        timers = [engine.time_step(PROMPT[i % len(PROMPT)]) for i in range(WARM_STEPS + STEPS)][WARM_STEPS:]
        self._ctx.check()
        kinds = timers[0].products
        return (
            {kind: 1e6 * typical([t.products[kind] for t in timers]) for kind in kinds},
            {kind: 1e6 * typical([t.corrections[kind] for t in timers]) for kind in kinds},
        )


def typical(steps: list[list[float]]) -> float:
    """Mean over blocks of what a call takes when nothing disturbs it: the lowest octile of that call's times.

    Another busy program makes calls slower, products on two threads more than corrections on one, and never
    faster; with means or medians a table tuned beside it would correct far too much.
    """
    undisturbed = [sorted(times)[len(times) // 8] for times in zip(*steps, strict=True)]
    return sum(undisturbed) / len(undisturbed)
