"""Whether the path keeps its promise: its tables at the detents measured with all linears at work together.

Sums of single measurements and the joint measurement differ: linears share the link, the caches and one
another's waiting. So every detent's table is measured jointly, lowered or raised until it keeps the promise,
and the positions between the detents are scaled to what was measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from runtime.layers.base import LINEAR_KINDS, LinearKind
from runtime.protocol.events import KChunk, SlowdownPoint
from runtime.tuner.costs import Costs, added_us
from runtime.tuner.grid import Worth
from runtime.tuner.search import DETENTS, equal_gain

# The promise: a detent's measured slowdown is at most its target and at most this much below, where the
# linears have as much to correct.
PROMISE_PCT = 1.5
GOOD_ENOUGH_PCT = 0.3
# What is free by single measurements may measure so much jointly.
FREE_PCT = 0.3
# Joint measurements at one detent, unless the device is slow to measure.
MOST_TRIALS = 40
_TINY_PCT = 1e-3

JointPct = Callable[[KChunk], float]


def careful(target: float) -> float:
    """How far below a target to aim, in percent: noise, and a link that is some percent slower tomorrow."""
    return 0.25 + 0.03 * target


class Detent(msgspec.Struct, frozen=True):
    """A detent's table: what single measurements add up to, and what was measured with all at work."""

    target_pct: float
    k_chunk: KChunk
    predicted_pct: float
    measured_pct: float


@dataclass(slots=True)
class Verifier:
    """Settles the detents from left to right; no table takes back what one before it corrects."""

    costs: Costs
    points: tuple[SlowdownPoint, ...]
    measure: JointPct
    worth: Worth = equal_gain
    trials: int = MOST_TRIALS
    margin: Callable[[float], float] = careful
    _known: dict[KChunk, float] = field(default_factory=lambda: {KChunk(): 0.0})

    def detents(self, targets: Sequence[float] = DETENTS) -> Iterator[Detent]:
        """Every detent's table, measured; 0 % first, where only what is free may be corrected."""
        floor = KChunk()
        for target in (0.0, *targets):
            floor = self._settle(target, floor) if target else self._free()
            yield Detent(target, floor, round(self.predicted(floor), 3), round(self._known[floor], 3))

    def predicted(self, table: KChunk) -> float:
        """Sum of the single measurements, in percent."""
        return self.costs.pct(_by_kind(table))

    def _free(self) -> KChunk:
        """What the path corrects for nothing, if that is nearly true of all linears together."""
        table = self.points[0].k_chunk
        return table if self._pct(table) <= FREE_PCT else KChunk()

    def _settle(self, target: float, floor: KChunk) -> KChunk:
        """The path's table that fits in the joint measurement, up while there is room, and confirmed.

        Of many tables tried the one chosen is likely to be one that was measured too fast; it is measured
        again, and the search goes on with what both say.
        """
        aim, tries = target - self.margin(target), iter(range(self.trials))
        confirmed = [floor]
        while abs(self._known[confirmed[-1]] - aim) > GOOD_ENOUGH_PCT:
            table = self._up(aim, self._along(aim, floor, tries), tries)
            if table in confirmed:
                break
            confirmed.append(table)
            self._known[table] = (self._known[table] + self.measure(table)) / 2
        within = min(aim + GOOD_ENOUGH_PCT, target)
        return max((t for t in confirmed if t == floor or self._known[t] <= within), key=self._worth_of)

    def _worth_of(self, table: KChunk) -> float:
        return sum(self.worth(kind, getattr(table, kind)) for kind in LINEAR_KINDS)

    def _along(self, aim: float, floor: KChunk, tries: Iterator[int]) -> KChunk:
        """The richest of the path's tables, not poorer than `floor`, that measures within `aim`.

        Searched between one that fits and one that does not, where the last measurement lets expect it.
        """
        tables = list(dict.fromkeys(_richer(point.k_chunk, floor) for point in self.points))
        fits, fails, scale = -1, len(tables), 1.0
        while fails - fits > 1 and next(tries, None) is not None:
            expected = sum(self.predicted(table) * scale <= aim for table in tables) - 1
            index = min(max(expected, fits + 1), fails - 1)
            measured = self._pct(tables[index])
            fits, fails = (index, fails) if measured <= aim else (fits, index)
            scale = measured / max(self.predicted(tables[index]), 0.1)
        return tables[fits] if fits >= 0 else floor

    def _up(self, aim: float, table: KChunk, tries: Iterator[int]) -> KChunk:
        """Single steps, cheapest for their worth first, while more than GOOD_ENOUGH_PCT is left."""
        too_much: dict[LinearKind, int] = {}
        while self._pct(table) < aim - GOOD_ENOUGH_PCT:
            steps = list(self._steps(table, too_much, aim))
            if not steps or next(tries, None) is None:
                break
            kind, k = min(steps, key=lambda step: self._cost_per_worth(table, step))
            risen = _with(table, kind, k)
            if self._pct(risen) <= aim:
                table = risen
            else:
                too_much[kind] = k
        return table

    def _steps(
        self, table: KChunk, too_much: Mapping[LinearKind, int], aim: float
    ) -> Iterator[tuple[LinearKind, int]]:
        """Every kind's next rung, or half the way to what was found too much; of one that corrects nothing
        every rung that should fit, for the start costs most of it, and the smallest.
        """
        for kind in LINEAR_KINDS:
            now, limit = getattr(table, kind), too_much.get(kind)
            rungs = [k for k in self.costs.added[kind] if k > now]
            if not now:
                yield from ((kind, k) for k in self._first_rungs(table, kind, rungs, limit, aim))
                continue
            rung = min(rungs, default=now)
            k = rung if limit is None or rung < limit else (now + limit) // 2
            if k > now:
                yield kind, k

    def _first_rungs(
        self, table: KChunk, kind: LinearKind, rungs: Sequence[int], limit: int | None, aim: float
    ) -> list[int]:
        """Where to begin with a kind; below half of what was too much, or the search would creep down."""
        below = [k for k in rungs if limit is None or k <= limit // 2 or k == rungs[0] < limit]
        return [k for k in below if k == rungs[0] or self.predicted(_with(table, kind, k)) <= aim]

    def _cost_per_worth(self, table: KChunk, step: tuple[LinearKind, int]) -> float:
        kind, k = step
        now = getattr(table, kind)
        curve = self.costs.added[kind]
        spent = added_us(curve, k) - added_us(curve, now)
        return spent / (self.worth(kind, k) - self.worth(kind, now))

    def _pct(self, table: KChunk) -> float:
        if table not in self._known:
            self._known[table] = self.measure(table)
        return self._known[table]


def scaled_path(
    points: tuple[SlowdownPoint, ...], detents: tuple[Detent, ...], costs: Costs
) -> tuple[SlowdownPoint, ...]:
    """The path through the verified tables. Between two detents its tables are held between theirs, and come
    in later than the detent before.
    """
    path, floor, start, below = [SlowdownPoint(0.0, KChunk())], KChunk(), 0.0, 0.0
    for detent in detents:
        top = detent.k_chunk
        if top == floor:
            start = detent.target_pct
            continue
        end = min(max(detent.measured_pct, start + _TINY_PCT), detent.target_pct)
        span = max(detent.predicted_pct - below, 1e-9)
        for table in dict.fromkeys(_richer(floor, _poorer(point.k_chunk, top)) for point in points):
            share = (costs.pct(_by_kind(table)) - below) / span
            pct = round(start + share * (end - start), 3)
            if start < pct < end:
                path.append(SlowdownPoint(pct, table))
        path.append(SlowdownPoint(end, top))
        floor, start, below = top, detent.target_pct, detent.predicted_pct
    return tuple({point.slowdown_pct: point for point in path}.values())


def _richer(one: KChunk, other: KChunk) -> KChunk:
    """Of every kind the larger k_chunk."""
    return KChunk(**{kind: max(getattr(one, kind), getattr(other, kind)) for kind in LINEAR_KINDS})


def _poorer(one: KChunk, other: KChunk) -> KChunk:
    """Of every kind the smaller k_chunk."""
    return KChunk(**{kind: min(getattr(one, kind), getattr(other, kind)) for kind in LINEAR_KINDS})


def _with(table: KChunk, kind: LinearKind, k_chunk: int) -> KChunk:
    return msgspec.structs.replace(table, **{kind: k_chunk})


def _by_kind(table: KChunk) -> Mapping[LinearKind, int]:
    return {kind: getattr(table, kind) for kind in LINEAR_KINDS}
