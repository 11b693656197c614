"""Phase 1: how every kind's rows are fetched, from curves measured with each way that is worth trying.

The paper's rule begins: for every bound n_max of fetch programs each kind takes the most up to it, and one
common k_chunk is raised until the sum of all linears no longer fits; the bound with the most room wins. Kinds
differ more than one bound can say, so each kind's choice is then changed for as long as a change makes better
tables possible.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from runtime.layers.base import LINEAR_KINDS, LinearKind
from runtime.tuner.costs import BaseTimes, Costs, Curve, added_us, as_table
from runtime.tuner.grid import Worth, make_grid
from runtime.tuner.measurer import Launch, Launches
from runtime.tuner.search import DETENTS

# Curves of a kind by its launch.
Curves = Mapping[LinearKind, Mapping[Launch, Curve]]


def choose_launches(
    base: BaseTimes,
    curves: Curves,
    worth: Worth,
    targets: Sequence[float] = DETENTS,
) -> dict[LinearKind, Launch]:
    """A launch for every kind: of the largest worth over the target slowdowns that this search finds.

    A target's worth counts in shares of what it could be if every k_chunk had its own best launch, or the
    widest budgets would decide alone.
    """
    ideal = make_grid(Costs(base, _envelopes(curves)), worth)
    possible = {target: ideal.best_worth(target) for target in targets}

    def value(launches: Launches) -> float:
        grid = make_grid(costs_of(base, curves, launches), worth)
        return sum(grid.best_worth(target) / most for target, most in possible.items() if most > 0)

    chosen = common_launches(base, curves, worth, targets)
    best = value(chosen)
    while True:
        trials = [({**chosen, kind: n}, kind, n) for kind in LINEAR_KINDS for n in curves[kind]]
        scored = [(value(trial), trial) for trial, kind, n in trials if n != chosen[kind]]
        top = max(scored, key=lambda item: item[0], default=(best, chosen))
        if top[0] <= best:
            return dict(chosen)
        best, chosen = top


def _envelopes(curves: Curves) -> dict[LinearKind, dict[int, float]]:
    """Of every kind the least that each k_chunk costs with any launch."""
    ks = {kind: sorted({k for curve in curves[kind].values() for k in curve}) for kind in LINEAR_KINDS}
    return {
        kind: {k: min(added_us(c, k) for c in curves[kind].values() if max(c) >= k) for k in ks[kind]}
        for kind in LINEAR_KINDS
    }


def costs_of(base: BaseTimes, curves: Curves, launches: Launches) -> Costs:
    """The costs when every kind is launched as chosen."""
    return Costs(base, {kind: curves[kind][launches[kind]] for kind in LINEAR_KINDS})


def common_launches(
    base: BaseTimes,
    curves: Curves,
    worth: Worth,
    targets: Sequence[float] = DETENTS,
) -> dict[LinearKind, Launch]:
    """The paper's rule, scored over all targets; of equal bounds the smallest."""
    bounds = sorted({launch.programs for kind in LINEAR_KINDS for launch in curves[kind]})
    assignments = [{kind: _largest(list(curves[kind]), bound) for kind in LINEAR_KINDS} for bound in bounds]

    def score(launches: Launches) -> float:
        costs = costs_of(base, curves, launches)
        return sum(_common_worth(costs, target, worth) for target in targets)

    return max(assignments, key=score)


def _largest(launches: Sequence[Launch], bound: int) -> Launch:
    return max((launch for launch in launches if launch.programs <= bound), default=min(launches))


def _common_worth(costs: Costs, pct: float, worth: Worth) -> float:
    """Worth of the largest common k_chunk that fits; where none does, the smallest linear stays at 0."""
    by_size = sorted(LINEAR_KINDS, key=lambda kind: costs.base.linears[kind])
    for left_out in range(len(by_size)):
        taking = by_size[left_out:]
        k = _common_k(costs, pct, taking)
        if k:
            return sum(worth(kind, k) for kind in taking)
    return 0.0


def _common_k(costs: Costs, pct: float, taking: Sequence[LinearKind]) -> int:
    """Largest k_chunk that all of `taking` can have within `pct`; a k between rungs costs the next's."""

    def table(k: int) -> dict[LinearKind, int] | None:
        rungs = {kind: _rung_from(costs.added[kind], k) for kind in taking}
        if None in rungs.values():
            return None
        return as_table(rungs.get(kind) or 0 for kind in LINEAR_KINDS)

    ks = sorted({k for kind in taking for k in costs.added[kind]})
    return max((k for k in ks if (found := table(k)) and costs.pct(found) <= pct), default=0)


def _rung_from(curve: Curve, k: int) -> int | None:
    return min((rung for rung in curve if rung >= k), default=None)
