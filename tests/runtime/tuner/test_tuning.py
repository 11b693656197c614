"""Tuning of a simulated device: optima known by trying everything, the promise in the joint measurement."""

import itertools
import random

import pytest

from runtime.layers.base import LINEAR_KINDS
from runtime.protocol.events import KChunk, SlowdownPoint
from runtime.tuner import tuning
from runtime.tuner.costs import MAX_PCT, BaseTimes, Costs
from runtime.tuner.launches import choose_launches, common_launches
from runtime.tuner.search import DETENTS, at, equal_gain, gain
from runtime.tuner.verify import PROMISE_PCT, Verifier, careful
from tests.runtime.tuner.simulated import K_BYTES, SimulatedDevice, best_worth, every_assignment

SMALL = {"rungs": (4, 8, 16, 32, 64), "splits": (1, 4)}


def worth_of(table):
    return sum(gain(getattr(table, kind)) for kind in LINEAR_KINDS)


@pytest.mark.parametrize("ratio", [1.0, 2.7, 6.7])
def test_fetch_programs_are_nearly_the_best_of_all_choices(ratio):
    device = SimulatedDevice(ratio, **SMALL)
    base = tuning.base_times(device)
    curves = tuning.measured_curves(device, base)
    chosen = choose_launches(base, curves, equal_gain)

    def value(launches):
        return sum(best_worth(device, launches, detent, equal_gain) for detent in DETENTS)

    best = max(map(value, every_assignment(device)))
    assert value(chosen) >= 0.97 * best
    assert value(chosen) >= value(common_launches(base, curves, equal_gain)) - 1e-9


def test_a_fast_memory_wants_fewer_programs_than_bandwidth_alone_would():
    """On a device whose programs cost nothing the most are best; where they cost much, the fewest."""
    free, dear = SimulatedDevice(6.7, **SMALL), SimulatedDevice(6.7, **SMALL)
    free.added = lambda kind, n_tb, k: 4e-4 * k * K_BYTES[kind] / n_tb
    dear.added = lambda kind, n_tb, k: n_tb * 0.02 + 0.01 * k
    for device, position in ((free, -1), (dear, 0)):
        found = tuning.run(device)
        assert dict(found.launches) == {kind: device.launches(kind)[position] for kind in LINEAR_KINDS}


@pytest.mark.parametrize("interaction", [0.0, 0.1, 0.4, -0.1])
@pytest.mark.parametrize("ratio", [1.0, 2.7, 6.7])
def test_the_promise_holds_with_all_linears_at_work(ratio, interaction):
    device = SimulatedDevice(ratio, interaction)
    found = tuning.run(device)
    assert [detent.target_pct for detent in found.detents] == [0.0, *DETENTS]
    for detent in found.detents[1:]:
        table = at(found.path, detent.target_pct)
        assert table == detent.k_chunk
        measured = device.table_pct(found.launches, table)
        assert measured == pytest.approx(detent.measured_pct, abs=1e-3)
        assert measured <= detent.target_pct
        richer = next_tables(device, found.launches, table)
        within = detent.target_pct - measured <= PROMISE_PCT
        aim = detent.target_pct - careful(detent.target_pct)
        assert within or all(device.table_pct(found.launches, t) > aim for t in richer)


def next_tables(device, launches, table):
    for kind in LINEAR_KINDS:
        higher = [k for k in device.rungs(kind, launches[kind]) if k > getattr(table, kind)]
        if higher:
            yield KChunk(**{x: getattr(table, x) if x != kind else min(higher) for x in LINEAR_KINDS})


@pytest.mark.parametrize("interaction", [0.0, 0.4])
def test_the_verified_path_never_takes_a_channel_away(interaction):
    path = tuning.run(SimulatedDevice(6.7, interaction)).path
    assert path[0].slowdown_pct == 0
    for earlier, later in itertools.pairwise(path):
        assert earlier.slowdown_pct < later.slowdown_pct <= MAX_PCT
        assert all(getattr(earlier.k_chunk, kind) <= getattr(later.k_chunk, kind) for kind in LINEAR_KINDS)
    assert len(path) > 5


@pytest.mark.parametrize("ratio", [1.0, 2.7, 6.7])
def test_tables_are_nearly_as_good_as_any_that_fit(ratio):
    device = SimulatedDevice(ratio, **SMALL)
    found = tuning.run(device)
    for detent in DETENTS[1:]:
        best = max(best_worth(device, n, detent, equal_gain) for n in every_assignment(device))
        assert worth_of(at(found.path, detent)) >= 0.75 * best


MODEL_US = {"start_us": 1.8, "rest_us": 12.0}
WORTH = {"qkv": 1.0, "o": 0.5, "gate_up": 3.0, "down": 2.0}


def weighted(kind, k):
    return WORTH[kind] * gain(k)


@pytest.mark.parametrize("interaction", [0.0, 0.1, -0.1])
def test_where_starts_are_dear_the_kinds_worth_most_come_first(interaction):
    """A start is 3.6 % of a block: 5 % affords one kind, 10 % two."""
    device = SimulatedDevice(1.0, interaction, **MODEL_US)
    found = tuning.run(device, weighted)
    tables = {d.target_pct: d.k_chunk for d in found.detents}
    working = {pct: {kind for kind in LINEAR_KINDS if getattr(table, kind)} for pct, table in tables.items()}
    assert working[2.5] == set()
    assert working[5.0] == {"gate_up"}
    assert working[10.0] >= {"gate_up", "down"}
    for detent in found.detents:
        assert detent.measured_pct <= detent.target_pct
        assert at(found.path, detent.target_pct) == detent.k_chunk
    for earlier, later in itertools.pairwise(found.path):
        assert all(getattr(earlier.k_chunk, kind) <= getattr(later.k_chunk, kind) for kind in LINEAR_KINDS)


def test_where_starts_are_dear_tables_are_nearly_as_good_as_any_that_fit():
    device = SimulatedDevice(1.0, rungs=(1, 4, 8, 16, 32, 64), splits=(1, 4), **MODEL_US)
    found = tuning.run(device, weighted)
    for detent in DETENTS[1:]:
        best = max(best_worth(device, n, detent, weighted) for n in every_assignment(device))
        table = at(found.path, detent)
        assert sum(weighted(kind, getattr(table, kind)) for kind in LINEAR_KINDS) >= 0.75 * best


@pytest.mark.parametrize(("aim_pct", "wanted"), [(10.0, 8), (3.5, 1)])
def test_a_kind_begins_where_its_start_pays_and_fits(aim_pct, wanted):
    """A start of 2 us and a curve that is flat up to 8; the path has no table, and there is one step."""
    curve = {0: 0.0, 1: 2.0, 8: 2.2, 64: 7.0}
    costs = Costs(BaseTimes(dict.fromkeys(LINEAR_KINDS, 15.0)), dict.fromkeys(LINEAR_KINDS, curve))
    points = (SlowdownPoint(0.0, KChunk()),)
    verifier = Verifier(
        costs, points, lambda table: costs.pct(by_kind(table)), trials=2, margin=lambda _: 0.0
    )
    *_, detent = verifier.detents((aim_pct,))
    assert sorted(by_kind(detent.k_chunk).values()) == [0, 0, 0, wanted]


def by_kind(table):
    return {kind: getattr(table, kind) for kind in LINEAR_KINDS}


def test_bytes_can_be_what_counts():
    device = SimulatedDevice(2.7)
    by_bytes = tuning.run(device, lambda kind, k: 57_344 * k if kind == "gate_up" else 1.0 * k)
    by_gain = tuning.run(device)
    assert at(by_bytes.path, 5).gate_up >= at(by_gain.path, 5).gate_up
    assert at(by_bytes.path, 5).o < at(by_gain.path, 5).o


def test_nothing_is_corrected_where_nothing_fits():
    device = SimulatedDevice(0.02)
    found = tuning.run(device)
    assert {detent.k_chunk for detent in found.detents} == {KChunk()}
    assert at(found.path, 20.0) == KChunk()


def test_every_detent_takes_few_joint_measurements():
    device = SimulatedDevice(2.7, 0.3)
    tuning.run(device)
    assert len(device.measured) <= 64


class Noisy(SimulatedDevice):
    """Whose joint measurements scatter as an H200's do."""

    def __init__(self, seed):
        super().__init__(1.0, 0.1)
        self.noise = random.Random(seed)

    def table_pct(self, launches, table):
        return super().table_pct(launches, table) + self.noise.gauss(0.0, 0.25) * (table.total > 0)


def test_noise_does_not_break_the_promise():
    """Of many tables tried the luckiest would be chosen: most must hold without noise, none fail by much."""
    true, beyond = SimulatedDevice(1.0, 0.1), []
    for seed in range(24):
        found = tuning.run(Noisy(seed))
        for detent in found.detents[2:]:
            beyond.append(true.table_pct(found.launches, detent.k_chunk) - detent.target_pct)
    assert max(beyond) < 0.35
    assert sum(over > 0 for over in beyond) <= 2
    assert sum(over < -PROMISE_PCT for over in beyond) <= 4


def test_progress_counts_points_then_detents():
    points, detents = [], []
    tuning.run(
        SimulatedDevice(2.7),
        progress=lambda *counts: points.append(counts),
        checking=lambda *counts: detents.append(counts),
    )
    assert points[0][0] == 0
    assert points[-1][0] == points[-1][1]
    assert detents == [(done, len(DETENTS)) for done in range(len(DETENTS) + 1)]
