"""From measured costs to the slider's path: pure search, no device.

The path is one growing sequence of tables, so moving right never takes a channel away, and every position
has its table. The paper raises k where that is cheapest until nothing fits. Latencies are staircases, on
which the cheapest next step is often not on the way to the best table; so here the whole path is chosen at
once: of all growing sequences the one whose worth, summed over the slider's positions, is largest.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from runtime.layers.base import LinearKind
from runtime.protocol.events import KChunk, SlowdownPoint
from runtime.tuner.costs import MAX_PCT, Costs
from runtime.tuner.grid import Grid, Worth, make_grid

DETENTS = (2.5, 5.0, 10.0, 20.0)
LEVEL_PCT = 0.25


def gain(k_chunk: int) -> float:
    """Worth of correcting k channels per 1024 of a linear, in doublings.

    Fitted to measured perplexities (3-bit SmolLM2, WikiText): log ppl falls by 0.157 for every doubling of k,
    and by as much as five doublings from 0 to 8.
    """
    return math.log2(1 + 4 * k_chunk)


def equal_gain(kind: LinearKind, k_chunk: int) -> float:
    """`gain`, alike for every kind."""
    return gain(k_chunk)


def path(costs: Costs, worth: Worth = equal_gain) -> tuple[SlowdownPoint, ...]:
    """Tables from 0 to MAX_PCT, ascending in slowdown; the first is what is free."""
    grid = make_grid(costs, worth)
    tables = [grid.table(index) for index in _best_chain(grid)]
    points = [SlowdownPoint(round(costs.pct(table), 3), KChunk(**table)) for table in tables]
    return tuple({point.slowdown_pct: point for point in points}.values())


def at(points: tuple[SlowdownPoint, ...], pct: float) -> KChunk:
    """The table in force at a slider position."""
    return max((p for p in points if p.slowdown_pct <= pct), key=lambda p: p.slowdown_pct).k_chunk


def _best_chain(grid: Grid) -> list[tuple[int, ...]]:
    """An index for every level of the slider, none falling on any axis, of the largest sum of worths.

    values[i][t]: the best sum over levels 0..i when level i has table t; what led there is found backwards.
    """
    levels = np.arange(0.0, MAX_PCT + LEVEL_PCT / 2, LEVEL_PCT)
    values: list[Any] = []
    reachable: Any = 0.0
    for level in levels:
        value = np.where(grid.within(level), grid.worth + reachable, -np.inf).astype(np.float32)
        values.append(value)
        reachable = _best_below(value)
    chain = [tuple(size - 1 for size in grid.worth.shape)]
    for value in reversed(values):
        below = value[tuple(slice(0, i + 1) for i in chain[-1])]
        chain.append(tuple(int(i) for i in np.unravel_index(int(below.argmax()), below.shape)))
    return chain[:0:-1]


def _best_below(value: Any) -> Any:
    """Of every table the largest value of any table that corrects no more."""
    for axis in range(value.ndim):
        value = np.maximum.accumulate(value, axis=axis)
    return value
