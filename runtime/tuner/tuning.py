"""The whole of tuning on any device: curves, launches, the path, and its promise checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from runtime.layers.base import LINEAR_KINDS, LinearKind
from runtime.protocol.events import SlowdownPoint
from runtime.tuner.costs import MAX_PCT, BaseTimes, Costs, GrowingCurve
from runtime.tuner.grid import Worth
from runtime.tuner.launches import Curves, choose_launches, costs_of
from runtime.tuner.measurer import Launch, Launches, Measurer
from runtime.tuner.search import DETENTS, equal_gain, path
from runtime.tuner.verify import Detent, Verifier, careful, scaled_path

Progress = Callable[[int, int], object]
# Hears of every point of a curve: the kind, how it is fetched, k_chunk, microseconds of the linear.
Listener = Callable[[LinearKind, Launch, int, float], None]


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
    listener: Listener = lambda kind, launch, k_chunk, us: None,
) -> Tuned:
    """Measure curves, choose launches and the path, verify; progress in measured points, then in detents."""
    base = base_times(measurer)
    curves = measured_curves(measurer, base, progress, listener)
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
    measurer: Measurer,
    base: BaseTimes,
    progress: Progress = lambda done, total: None,
    listener: Listener = lambda kind, launch, k_chunk, us: None,
) -> Curves:
    """Curves of every kind with each of its launches, up to what one alone may cost.

    They grow side by side, so that one look at all of them is worth something early on.
    """
    budget = MAX_PCT / 100 * base.total
    curves = {
        kind: {
            n: GrowingCurve(base.linears[kind], measurer.rungs(kind, n), budget)
            for n in measurer.launches(kind)
        }
        for kind in LINEAR_KINDS
    }
    growing = [(kind, n, curve) for kind, ways in curves.items() for n, curve in ways.items()]
    total = sum(len(curve.rungs) for _, _, curve in growing)
    left = list(growing)
    while left:
        for kind, n, curve in left:
            progress(_passed(curve for _, _, curve in growing), total)
            _grow(measurer, kind, n, curve, listener)
        left = [each for each in left if each[2].next_k is not None]
    progress(total, total)
    return {kind: {n: curve.even() for n, curve in ways.items()} for kind, ways in curves.items()}


def _grow(
    measurer: Measurer, kind: LinearKind, launch: Launch, curve: GrowingCurve, listener: Listener
) -> None:
    """One point more."""
    if (k := curve.next_k) is not None:
        us = measurer.corrected_us(kind, launch, k)
        curve.add(us)
        listener(kind, launch, k, us)


def _passed(curves: Iterable[GrowingCurve]) -> int:
    """Points that need no measuring any more."""
    return sum(len(c.rungs) if c.next_k is None else len(c.added) for c in curves)
