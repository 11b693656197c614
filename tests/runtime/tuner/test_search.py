"""The path's promises on made-up latency curves."""

import itertools
import math
import random

import pytest

from runtime.layers.base import LINEAR_KINDS
from runtime.tuner.costs import MAX_PCT, BaseTimes, Costs, added_us, knee, measured_curve, never_falling
from runtime.tuner.grid import MOST_RUNGS, affordable, make_grid
from runtime.tuner.search import DETENTS, LEVEL_PCT, at, equal_gain, gain, path

BASE = {"qkv": 38.0, "o": 27.0, "gate_up": 85.0, "down": 52.0}
ENTRY = {"qkv": 5.6, "o": 5.5, "gate_up": 6.0, "down": 11.0}
SLOPE = {"qkv": 0.05, "o": 0.03, "gate_up": 0.15, "down": 0.12}
RUNGS = (4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
BUDGET = MAX_PCT / 100 * sum(BASE.values())
# 4 % of the base.
START = 0.04 * sum(BASE.values())


def curve(kind, k):
    return ENTRY[kind] + SLOPE[kind] * k if k else 0.0


def free_until(kind, k):
    """A GPU's: nothing up to a knee of 32, then linear."""
    return max(0, k - 32) * SLOPE[kind]


def noisy(kind, k):
    return curve(kind, k) * random.Random(f"{kind}{k}").uniform(0.9, 1.1)


def stairs(kind, k):
    """Flat within a batch of 24."""
    return 0.4 + SLOPE[kind] * 24 * math.ceil(k / 24) if k else 0.0


def jump(kind, k):
    """Correcting at all is dear; more channels are cheap."""
    return START + 0.02 * SLOPE[kind] * k if k else 0.0


def costs_of(added, rungs=RUNGS, rest=0.0):
    curves = {
        kind: measured_curve(BASE[kind], lambda k, kind=kind: BASE[kind] + added(kind, k), rungs, BUDGET)
        for kind in LINEAR_KINDS
    }
    return Costs(BaseTimes(BASE, rest), curves)


def by_kind(table):
    return {kind: getattr(table, kind) for kind in LINEAR_KINDS}


@pytest.mark.parametrize("added", [curve, free_until, noisy, stairs, jump])
def test_path_grows_from_nothing_and_stays_within_its_slowdown(added):
    costs = costs_of(added)
    points = path(costs)
    assert points[0].slowdown_pct == 0
    for earlier, later in itertools.pairwise(points):
        assert earlier.slowdown_pct < later.slowdown_pct <= MAX_PCT
        assert all(a <= b for a, b in zip(by_kind(earlier.k_chunk).values(), by_kind(later.k_chunk).values()))  # noqa: B905
    for point in points:
        table = by_kind(point.k_chunk)
        spent = sum(costs.added[kind].get(k, 0) for kind, k in table.items()) if any(table.values()) else 0
        assert point.slowdown_pct == pytest.approx(100 * spent / sum(BASE.values()), abs=1e-3)


def brute_force_chain(costs, levels):
    """Best sum of gains over growing tables, one a level, by recursion over every table."""
    ladders = [sorted({0, *costs.added[kind]}) for kind in LINEAR_KINDS]
    tables = [dict(zip(LINEAR_KINDS, ks, strict=True)) for ks in itertools.product(*ladders)]
    worth = [sum(equal_gain(kind, k) for kind, k in table.items()) for table in tables]
    pct = [costs.pct(table) for table in tables]
    best = [0.0] * len(tables)
    for level in levels:
        found = [
            max((best[j] for j in range(len(tables)) if all(tables[j][x] <= t[x] for x in t)), default=0.0)
            for t in tables
        ]
        best = [found[i] + worth[i] if pct[i] <= level + 1e-9 else -math.inf for i in range(len(tables))]
    return max(best)


@pytest.mark.parametrize("added", [curve, stairs, noisy, jump])
def test_no_other_growing_path_is_worth_more(added, monkeypatch):
    monkeypatch.setattr("runtime.tuner.search.LEVEL_PCT", 5.0)
    costs = costs_of(added, rungs=(8, 24, 100))
    points, levels = path(costs), [0.0, 5.0, 10.0, 15.0, 20.0]
    total = sum(sum(map(gain, by_kind(at(points, level)).values())) for level in levels)
    assert total == pytest.approx(brute_force_chain(costs, levels), rel=1e-5)


@pytest.mark.parametrize("added", [curve, free_until, noisy, stairs, jump])
def test_nothing_more_fits_at_the_right_end(added):
    costs = costs_of(added)
    last = path(costs)[-1]
    left = (MAX_PCT - last.slowdown_pct) / 100 * sum(BASE.values())
    for kind, k in by_kind(last.k_chunk).items():
        spent = costs.added[kind].get(k, 0.0)
        more = [cost for candidate, cost in costs.added[kind].items() if candidate > k]
        assert all(cost - spent > left - 1e-2 for cost in more)


def test_ten_percent_buys_16_channels_on_two_kinds():
    """The curve is that of a small model on a CPU with the correction in one compiled pass."""
    table = by_kind(at(path(costs_of(curve)), 10))
    assert sum(k >= 16 for k in table.values()) >= 2


def test_a_second_kind_enters_before_the_first_is_driven_to_its_end():
    points = path(costs_of(curve))
    second = next(p for p in points if sum(k > 0 for k in by_kind(p.k_chunk).values()) >= 2)
    assert max(by_kind(second.k_chunk).values()) <= 256


def test_a_free_region_costs_nothing():
    points = path(costs_of(free_until))
    assert all(k >= 32 for k in by_kind(points[0].k_chunk).values())


def test_a_hopeless_kind_stays_at_zero():
    dear = lambda kind, k: curve(kind, k) + (1000 if kind == "down" and k else 0)  # noqa: E731
    last = path(costs_of(dear))[-1].k_chunk
    assert last.down == 0
    assert last.gate_up > 0


def test_nothing_affordable_gives_the_zero_table_everywhere():
    points = path(costs_of(lambda kind, k: 1000.0))
    assert len(points) == 1
    assert at(points, 20).total == 0


def test_only_kinds_that_correct_pay_for_it():
    costs = costs_of(stairs)
    alone = costs.pct({"qkv": 24, "o": 0, "gate_up": 0, "down": 0})
    assert alone == pytest.approx(100 * (0.4 + 24 * SLOPE["qkv"]) / sum(BASE.values()))
    assert costs.pct(dict.fromkeys(LINEAR_KINDS, 0)) == 0


def test_a_budget_for_one_or_two_starts_is_spent_on_the_kinds_worth_most():
    weights = {"qkv": 1.0, "o": 0.5, "gate_up": 3.0, "down": 2.0}
    points = path(costs_of(jump), lambda kind, k: weights[kind] * gain(k))
    assert at(points, 3.9).total == 0
    for pct, wanted in ((5, {"gate_up"}), (10, {"gate_up", "down"}), (15, {"gate_up", "down", "qkv"})):
        table = by_kind(at(points, pct))
        assert {kind for kind, k in table.items() if k} == wanted
        assert min(table[kind] for kind in wanted) >= 16
    assert all(by_kind(at(points, 20)).values())


def test_measuring_stops_when_the_budget_is_spent_and_never_falls():
    asked = []

    def steep(k):
        asked.append(k)
        return 10.0 + {0: 0.0, 4: 1.0, 8: 0.5, 16: 3.0}.get(k, 99.0)

    found = measured_curve(10.0, steep, RUNGS, budget=2.0)
    assert asked == [4, 8, 16]
    assert found == {0: 0.0, 4: 0.75, 8: 0.75, 16: 3.0}


def test_noise_is_evened_out_without_a_bias():
    assert never_falling([3.0, 1.0, 2.0, 5.0, 4.0]) == [2.0, 2.0, 2.0, 4.5, 4.5]
    assert never_falling([1.0, 2.0, 3.0]) == [1.0, 2.0, 3.0]
    noise = random.Random(1)
    values = [noise.gauss(5.0, 1.0) for _ in range(200)]
    assert sum(never_falling(values)) == pytest.approx(sum(values))


def test_the_rest_of_a_step_widens_the_budget():
    assert at(path(costs_of(curve, rest=200.0)), 10).total > at(path(costs_of(curve)), 10).total


def test_detents_take_the_last_table_that_fits():
    points = path(costs_of(curve))
    for detent in DETENTS:
        fitting = [p for p in points if p.slowdown_pct <= detent]
        assert at(points, detent) == fitting[-1].k_chunk
        # A detent shares the path with all other levels of the slider, and loses little by it.
        best = make_grid(costs_of(curve), equal_gain).best_worth(detent - LEVEL_PCT)
        assert sum(map(gain, by_kind(at(points, detent)).values())) >= 0.8 * best


def test_equal_costs_keep_the_largest_and_long_ladders_are_thinned():
    assert affordable({0: 0.0, 4: 1.0, 8: 1.0, 16: 2.0, 32: 9.0}, 2.0) == (0, 8, 16)
    long = {k: float(k) for k in range(200)}
    kept = affordable(long, 100.0)
    assert len(kept) == MOST_RUNGS
    assert (kept[0], kept[-1]) == (0, 100)


def test_the_knee_is_where_the_flat_part_ends():
    found = {0: 0.0, 8: 2.3, 16: 2.4, 24: 5.0, 32: 8.0}
    assert knee(found, base_us=20.0) == 16
    assert knee({0: 0.0, 8: 9.0}, base_us=20.0) == 8
    assert knee({0: 0.0}, base_us=20.0) == 0


def test_gain_follows_the_measured_perplexities():
    """3-bit SmolLM2: ppl at k 0, 8, 16, 32, 64, 128; equal gains must mean equal drops of log ppl."""
    ppl = {0: 156.6, 8: 72.7, 16: 60.6, 32: 51.8, 64: 44.3, 128: 37.9}
    drops = [math.log(ppl[0] / ppl[k]) for k in ppl]
    unit = drops[-1] / gain(128)
    assert [unit * gain(k) for k in ppl] == pytest.approx(drops, abs=0.05)


def test_impossible_base_times_are_refused():
    with pytest.raises(ValueError, match="positive"):
        BaseTimes({"qkv": 0.0})
    with pytest.raises(ValueError, match="rest"):
        BaseTimes(BASE, -1.0)


def test_costs_between_rungs_lie_on_a_line():
    found = {0: 0.0, 8: 2.0, 16: 6.0}
    assert [added_us(found, k) for k in (0, 4, 8, 12, 16, 20)] == [0.0, 2.0, 2.0, 4.0, 6.0, 6.0]
    assert [added_us({8: 2.0, 16: 6.0}, k) for k in (0, 8, 12)] == [0.0, 2.0, 4.0]
