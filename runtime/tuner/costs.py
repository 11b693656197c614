"""What corrections cost, by linear kind and k_chunk: curves that never fall, and their sums."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from runtime.layers.base import LINEAR_KINDS, LinearKind

MAX_PCT = 20.0

Curve = Mapping[int, float]


@dataclass(frozen=True, slots=True)
class Costs:
    """Microseconds of one base product per kind, and what each k_chunk adds (k ascending, never falling).

    A curve's entry for 0, where it has one, is what being ready to correct costs; it is paid by every kind as
    soon as any is corrected. `other` is the time per decoder block that no linear takes part in; it belongs
    to what 100 % means.
    """

    base: Mapping[LinearKind, float]
    added: Mapping[LinearKind, Curve]
    other: float = 0.0

    def __post_init__(self) -> None:
        if not all(math.isfinite(us) and us > 0 for us in self.base.values()):
            raise ValueError(f"base times must be positive, not {dict(self.base)}")

    @property
    def total(self) -> float:
        """Microseconds of a block without correction."""
        return sum(self.base.values()) + self.other

    def pct(self, table: Mapping[LinearKind, int]) -> float:
        """Slowdown of a table in percent; nothing corrected costs nothing."""
        if not any(table.values()):
            return 0.0
        return 100.0 * sum(added_us(self.added[kind], k) for kind, k in table.items()) / self.total


def added_us(curve: Curve, k_chunk: int) -> float:
    """Microseconds at k_chunk, on a line between measured ones; beyond the last those of the last.

    Below the smallest measured one it costs as much as that: the start is what it pays for.
    """
    if not curve:
        return 0.0
    low = max((k for k in curve if k <= k_chunk), default=min(curve))
    high = min((k for k in curve if k >= k_chunk), default=max(curve))
    if not k_chunk or low >= high:
        return curve.get(min(k_chunk, high), 0.0)
    if not low:
        return curve[high]
    return curve[low] + (curve[high] - curve[low]) * (k_chunk - low) / (high - low)


def measured_curve(
    base_us: float, corrected: Callable[[int], float], rungs: Iterable[int], budget: float
) -> dict[int, float]:
    """Added microseconds at 0 and at every rung (ascending), up to the first that costs more than `budget`.

    Noise is evened out: of all curves that never fall it is the one nearest to what was measured.
    """
    measured: list[float] = []
    ks = (0, *rungs)
    for k in ks:
        measured.append(corrected(k) - base_us)
        if measured[-1] > budget:
            break
    even = (max(us, 0.0) for us in never_falling(measured))
    return dict(zip(ks, even, strict=False))


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
    """The largest k_chunk that costs at most `tolerance` of the base above being ready; 0: none."""
    entry = curve.get(0, 0.0)
    return max((k for k, added in curve.items() if added - entry <= tolerance * base_us), default=0)


def as_table(ks: Iterable[int]) -> dict[LinearKind, int]:
    """k_chunk by kind, from values in the order of LINEAR_KINDS."""
    return dict(zip(LINEAR_KINDS, ks, strict=True))
