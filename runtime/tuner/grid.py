"""Every table of four curves at once, as arrays with an axis for each kind: exact searches stay small."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np

from runtime.layers.base import LINEAR_KINDS, LinearKind
from runtime.tuner.costs import MAX_PCT, Costs, Curve, added_us

Worth = Callable[[LinearKind, int], float]
# Of a kind's rungs, 0 included: 20^4 tables are searched in a fraction of a second.
MOST_RUNGS = 20
# Shares of a percent below this are rounding.
_ROUNDING_PCT = 1e-6


@dataclass(frozen=True, slots=True)
class Grid:
    """rungs: k_chunk by kind, from 0 up; pct, worth: arrays with one axis a kind, in LINEAR_KINDS' order."""

    rungs: tuple[tuple[int, ...], ...]
    pct: Any
    worth: Any

    def within(self, pct: float) -> Any:
        """Where a table's slowdown is at most `pct`."""
        return self.pct <= pct + _ROUNDING_PCT

    def table(self, index: tuple[int, ...]) -> dict[LinearKind, int]:
        """k_chunk by kind at an index."""
        return {kind: ks[i] for kind, ks, i in zip(LINEAR_KINDS, self.rungs, index, strict=True)}

    def best_worth(self, pct: float) -> float:
        """Largest worth of a table within `pct`."""
        return float(self.worth[self.within(pct)].max())


def make_grid(costs: Costs, worth: Worth) -> Grid:
    """Tables of all rungs that are affordable alone and that no larger one undercuts."""
    total = costs.base.total
    rungs = tuple(affordable(costs.added[kind], MAX_PCT / 100 * total) for kind in LINEAR_KINDS)
    axes = list(zip(LINEAR_KINDS, rungs, strict=True))
    pct = _outer_sum([[added_us(costs.added[kind], k) for k in ks] for kind, ks in axes]) * (100 / total)
    return Grid(rungs, pct, _outer_sum([[worth(kind, k) for k in ks] for kind, ks in axes]))


def affordable(curve: Curve, budget: float) -> tuple[int, ...]:
    """0 and the k that cost at most `budget`, of equal costs only the largest; at most MOST_RUNGS."""
    cheapest_last = {added: k for k, added in sorted(curve.items()) if k and added <= budget}
    return (0, *_thinned(sorted(cheapest_last.items()), MOST_RUNGS - 1))


def _thinned(points: list[tuple[float, int]], count: int) -> list[int]:
    """At most `count` k of ascending (cost, k): those go first whose next one costs least more."""
    while len(points) > count:
        steps = [later[0] - earlier[0] for earlier, later in pairwise(points)]
        del points[steps.index(min(steps))]
    return [k for _, k in points]


def _outer_sum(axes: list[list[float]]) -> Any:
    return reduce(np.add.outer, [np.asarray(axis, np.float64) for axis in axes])
