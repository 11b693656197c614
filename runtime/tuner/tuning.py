"""The whole of tuning on any device: curves, launches, the path, and its promise checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from runtime.layers.base import LINEAR_KINDS, LinearKind
from runtime.protocol.events import SlowdownPoint
from runtime.tuner.costs import MAX_PCT, BaseTimes, Costs, measured_curve
from runtime.tuner.grid import Worth
from runtime.tuner.launches import Curves, choose_launches, costs_of
from runtime.tuner.measurer import Launch, Launches, Measurer
from runtime.tuner.search import DETENTS, equal_gain, path
from runtime.tuner.verify import Detent, Verifier, careful, scaled_path

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Tuned:
    """launches: how each kind fetches. costs: with these. path: verified. detents: 0 % and the slider's."""

    launches: Launches
    costs: Costs
    path: tuple[SlowdownPoint, ...]
    detents: tuple[Detent, ...]


def run(
    measurer: Measurer,
    worth: Worth = equal_gain,
    progress: Progress = lambda done, total: None,
    checking: Progress = lambda done, total: None,
) -> Tuned:
    """Measure curves, choose launches and the path, verify; progress in measured points, then in detents."""
    base = base_times(measurer)
    curves = measured_curves(measurer, base, progress)
    return settle(measurer, base, curves, worth, checking=checking)


def base_times(measurer: Measurer) -> BaseTimes:
    """What slowdowns are percents of."""
    return BaseTimes({kind: measurer.base_us(kind) for kind in LINEAR_KINDS}, measurer.rest_us)


def settle(
    measurer: Measurer,
    base: BaseTimes,
    curves: Curves,
    worth: Worth = equal_gain,
    targets: Sequence[float] = DETENTS,
    margin: Callable[[float], float] = careful,
    checking: Progress = lambda done, total: None,
) -> Tuned:
    """The search and the joint measurements, from measured curves.

    `targets` are the slowdowns that count; `margin`: how far below each to aim.
    """
    launches = choose_launches(base, curves, worth, targets)
    costs = costs_of(base, curves, launches)
    points = path(costs, worth)
    trials = measurer.joint_trials
    verifier = Verifier(
        costs, points, lambda table: measurer.table_pct(launches, table), worth, trials, margin
    )
    detents: list[Detent] = []
    for detent in verifier.detents(targets):
        checking(len(detents), len(targets))
        detents.append(detent)
    return Tuned(launches, costs, scaled_path(points, tuple(detents), costs), tuple(detents))


def measured_curves(
    measurer: Measurer, base: BaseTimes, progress: Progress = lambda done, total: None
) -> Curves:
    """Curves of every kind with each of its launches, up to what one alone may cost."""
    budget = MAX_PCT / 100 * base.total
    wanted = [(kind, n) for kind in LINEAR_KINDS for n in measurer.launches(kind)]
    total = sum(len(measurer.rungs(kind, n)) for kind, n in wanted)
    curves: dict[LinearKind, dict[Launch, dict[int, float]]] = {kind: {} for kind in LINEAR_KINDS}
    done = 0
    for kind, n in wanted:
        progress(done, total)
        rungs = measurer.rungs(kind, n)
        corrected = partial(measurer.corrected_us, kind, n)
        curves[kind][n] = measured_curve(base.linears[kind], corrected, rungs, budget)
        done += len(rungs)
    progress(total, total)
    return curves
