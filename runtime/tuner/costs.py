"""What corrections cost, by linear kind and k_chunk: curves that never fall, and their sums."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from runtime.layers.base import LINEAR_KINDS, LinearKind

MAX_PCT = 20.0

Curve = Mapping[int, float]


@dataclass(frozen=True, slots=True)
class BaseTimes:
    """Microseconds of a decoder block without correction: one product of every kind, and the `rest` of what
    100 % means: attention, and a block's share of what a token takes before and after all blocks.
    """

    linears: Mapping[LinearKind, float]
    rest: float = 0.0

    def __post_init__(self) -> None:
        if not all(math.isfinite(us) and us > 0 for us in self.linears.values()):
            raise ValueError(f"base times must be positive, not {dict(self.linears)}")
        if not (math.isfinite(self.rest) and self.rest >= 0):
            raise ValueError(f"the rest of a step cannot take {self.rest} us")

    @property
    def total(self) -> float:
        """Microseconds that slowdowns are percents of."""
        return sum(self.linears.values()) + self.rest


@dataclass(frozen=True, slots=True)
class Costs:
    """What each k_chunk adds to the base, in microseconds by kind (k ascending, never falling).

    Correcting anything has a price of its own, so curves jump at their smallest k_chunk; 0 costs nothing.
    """

    base: BaseTimes
    added: Mapping[LinearKind, Curve]

    def pct(self, table: Mapping[LinearKind, int]) -> float:
        """Slowdown of a table in percent."""
        return 100.0 * sum(added_us(self.added[kind], k) for kind, k in table.items()) / self.base.total


def added_us(curve: Curve, k_chunk: int) -> float:
    """Microseconds at k_chunk, on a line between measured ones; beyond the last those of the last.

    Below the smallest measured one it costs as much as that: the start is what it pays for.
    """
    ks = [k for k in curve if k]
    if not k_chunk or not ks:
        return 0.0
    low = max((k for k in ks if k <= k_chunk), default=min(ks))
    high = min((k for k in ks if k >= k_chunk), default=max(ks))
    if low >= high:
        return curve[high]
    return curve[low] + (curve[high] - curve[low]) * (k_chunk - low) / (high - low)


@dataclass(slots=True)
class GrowingCurve:
    """A curve while it is measured: rung after rung (ascending), up to the first that costs more than
    `budget` microseconds.
    """

    base_us: float
    rungs: Sequence[int]
    budget: float
    added: list[float] = field(default_factory=list)

    @property
    def next_k(self) -> int | None:
        """What to measure next; None: nothing more."""
        over = bool(self.added) and self.added[-1] > self.budget
        return None if over or len(self.added) == len(self.rungs) else self.rungs[len(self.added)]

    def add(self, us: float) -> None:
        """What the linear took at `next_k`."""
        self.added.append(us - self.base_us)

    def even(self) -> dict[int, float]:
        """Added microseconds at 0 (none) and at what was measured: of all curves that never fall the one
        nearest to that, for noise falls.
        """
        us = (max(each, 0.0) for each in never_falling(self.added))
        return {0: 0.0, **dict(zip(self.rungs, us, strict=False))}


def measured_curve(
    base_us: float, corrected: Callable[[int], float], rungs: Sequence[int], budget: float
) -> dict[int, float]:
    """A `GrowingCurve` measured by itself."""
    curve = GrowingCurve(base_us, rungs, budget)
    while (k := curve.next_k) is not None:
        curve.add(corrected(k))
    return curve.even()


def never_falling(values: Sequence[float]) -> list[float]:
    """The ascending sequence of least squared distance: neighbours in the wrong order share their mean."""
    runs: list[tuple[float, int]] = []
    for value in values:
        mean, count = value, 1
        while runs and runs[-1][0] > mean:
            before, n = runs.pop()
            mean, count = (before * n + mean * count) / (n + count), n + count
        runs.append((mean, count))
    return [mean for mean, count in runs for _ in range(count)]


def knee(curve: Curve, base_us: float, tolerance: float = 0.025) -> int:
    """The largest k_chunk that costs at most `tolerance` of the base more than the smallest; 0: no curve."""
    ks = sorted(k for k in curve if k)
    return max((k for k in ks if curve[k] - curve[ks[0]] <= tolerance * base_us), default=0)


def as_table(ks: Iterable[int]) -> dict[LinearKind, int]:
    """k_chunk by kind, from values in the order of LINEAR_KINDS."""
    return dict(zip(LINEAR_KINDS, ks, strict=True))
