"""From measured costs to the slider's path: pure search, no device.

The path is one growing sequence of tables: cheapest increase first, where cheap means microseconds per gain.
Moving right therefore never takes a channel away, and every position between the detents has its table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from runtime.layers.base import LINEAR_KINDS, LinearKind
from runtime.protocol.events import KChunk, SlowdownPoint

MAX_PCT = 20.0
DETENTS = (2.5, 5.0, 10.0, 20.0)
CANDIDATES = (4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)

Corrected = Callable[[LinearKind, int], float]


@dataclass(frozen=True, slots=True)
class Costs:
    """Microseconds of one base product per kind, and what each k_chunk adds (k ascending, never falling).

    `other` is the time per decoder block that no linear takes part in; it belongs to what 100 % means.
    """

    base: Mapping[LinearKind, float]
    added: Mapping[LinearKind, Mapping[int, float]]
    other: float = 0.0

    def __post_init__(self) -> None:
        if not all(math.isfinite(us) and us > 0 for us in self.base.values()):
            raise ValueError(f"base times must be positive, not {dict(self.base)}")

    @property
    def total(self) -> float:
        """Microseconds of a block without correction."""
        return sum(self.base.values()) + self.other

    def pct(self, table: Mapping[LinearKind, int]) -> float:
        """Slowdown of a table in percent."""
        return 100.0 * sum(self.added[kind][k] for kind, k in table.items() if k) / self.total


def gain(k_chunk: int) -> float:
    """Worth of correcting k channels per 1024 of a linear, in doublings.

    Fitted to measured perplexities (3-bit SmolLM2, WikiText): log ppl falls by 0.157 for every doubling of k,
    and by as much as five doublings from 0 to 8.
    """
    return math.log2(1 + 4 * k_chunk)


def measure(
    base: Mapping[LinearKind, float],
    corrected: Corrected,
    limits: Mapping[LinearKind, int],
    other: float = 0.0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Costs:
    """Costs of every candidate worth trying; a candidate that no kind can afford alone ends the measuring.

    corrected(kind, k): microseconds of the whole corrected product. Noise is evened out: no cost is below
    that of a smaller k.
    """
    budget = MAX_PCT / 100 * (sum(base.values()) + other)
    added: dict[LinearKind, dict[int, float]] = {kind: {} for kind in LINEAR_KINDS}
    floor = dict.fromkeys(LINEAR_KINDS, 0.0)
    for done, k in enumerate(CANDIDATES):
        progress(done, len(CANDIDATES))
        for kind in LINEAR_KINDS:
            if k <= limits[kind] and floor[kind] <= budget:
                floor[kind] = max(floor[kind], corrected(kind, k) - base[kind])
                added[kind][k] = floor[kind]
        if min(floor.values()) > budget:
            break
    progress(len(CANDIDATES), len(CANDIDATES))
    return Costs(dict(base), added, other)


def path(costs: Costs) -> tuple[SlowdownPoint, ...]:
    """Tables from 0 to MAX_PCT, ascending in slowdown; the first corrects nothing."""
    table: dict[LinearKind, int] = dict.fromkeys(LINEAR_KINDS, 0)
    points = [SlowdownPoint(0.0, KChunk())]
    while (step := _cheapest(costs, table)) is not None:
        kind, k = step
        table[kind] = k
        points.append(SlowdownPoint(round(costs.pct(table), 3), KChunk(**table)))
    return _last_of_equal(points)


def at(points: tuple[SlowdownPoint, ...], pct: float) -> KChunk:
    """The table in force at a slider position."""
    return max((p for p in points if p.slowdown_pct <= pct), key=lambda p: p.slowdown_pct).k_chunk


def _cheapest(costs: Costs, table: dict[LinearKind, int]) -> tuple[LinearKind, int] | None:
    """The increase that fits MAX_PCT and costs least per gain; jumps over several candidates count too."""
    fitting = [step for step in _increases(costs, table) if costs.pct({**table, step[0]: step[1]}) <= MAX_PCT]

    def cost_per_gain(step: tuple[LinearKind, int]) -> tuple[float, int]:
        kind, k = step
        now = table[kind]
        spent = costs.added[kind][k] - (costs.added[kind][now] if now else 0.0)
        return spent / (gain(k) - gain(now)), -k

    return min(fitting, key=cost_per_gain, default=None)


def _increases(costs: Costs, table: dict[LinearKind, int]) -> Iterator[tuple[LinearKind, int]]:
    for kind in LINEAR_KINDS:
        yield from ((kind, k) for k in costs.added[kind] if k > table[kind])


def _last_of_equal(points: list[SlowdownPoint]) -> tuple[SlowdownPoint, ...]:
    """Of tables with one and the same slowdown only the richest, which comes last."""
    return tuple({point.slowdown_pct: point for point in points}.values())
