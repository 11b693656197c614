"""The path's promises on made-up latency curves."""

import itertools
import math
import random

import pytest

from runtime.layers.base import LINEAR_KINDS
from runtime.tuner.search import CANDIDATES, DETENTS, MAX_PCT, Costs, at, gain, measure, path

BASE = {"qkv": 38.0, "o": 27.0, "gate_up": 85.0, "down": 52.0}
ENTRY = {"qkv": 5.6, "o": 5.5, "gate_up": 6.0, "down": 11.0}
SLOPE = {"qkv": 0.05, "o": 0.03, "gate_up": 0.15, "down": 0.12}
LIMITS = dict.fromkeys(LINEAR_KINDS, 1024)


def curve(kind, k):
    return BASE[kind] + ENTRY[kind] + SLOPE[kind] * k


def free_until(kind, k):
    """A GPU's: nothing up to a knee of 32, then linear."""
    return BASE[kind] + max(0, k - 32) * SLOPE[kind]


def noisy(kind, k):
    return curve(kind, k) * random.Random(f"{kind}{k}").uniform(0.9, 1.1)


@pytest.mark.parametrize("latency", [curve, free_until, noisy])
def test_path_grows_from_nothing_and_stays_within_its_slowdown(latency):
    costs = measure(BASE, latency, LIMITS)
    points = path(costs)
    total = sum(BASE.values())
    assert points[0].slowdown_pct == 0
    for earlier, later in itertools.pairwise(points):
        assert earlier.slowdown_pct < later.slowdown_pct <= MAX_PCT
        for kind in LINEAR_KINDS:
            assert getattr(earlier.k_chunk, kind) <= getattr(later.k_chunk, kind)
    for point in points:
        spent = sum(costs.added[kind][k] for kind in LINEAR_KINDS if (k := getattr(point.k_chunk, kind)))
        assert point.slowdown_pct == pytest.approx(100 * spent / total, abs=1e-3)


@pytest.mark.parametrize("latency", [curve, free_until, noisy])
def test_nothing_more_fits_at_the_right_end(latency):
    costs = measure(BASE, latency, LIMITS)
    last = path(costs)[-1]
    left = (MAX_PCT - last.slowdown_pct) / 100 * sum(BASE.values())
    for kind in LINEAR_KINDS:
        k = getattr(last.k_chunk, kind)
        spent = costs.added[kind].get(k, 0.0)
        more = [added for candidate, added in costs.added[kind].items() if candidate > k]
        assert all(added - spent > left - 1e-2 for added in more)


def test_ten_percent_buys_16_channels_on_two_kinds():
    """The curve is that of a small model on a CPU with the correction in one compiled pass."""
    table = at(path(measure(BASE, curve, LIMITS)), 10)
    assert sum(getattr(table, kind) >= 16 for kind in LINEAR_KINDS) >= 2


def test_a_second_kind_enters_before_the_first_is_driven_to_its_end():
    points = path(measure(BASE, curve, LIMITS))
    second = next(p for p in points if sum(getattr(p.k_chunk, kind) > 0 for kind in LINEAR_KINDS) == 2)
    assert max(getattr(second.k_chunk, kind) for kind in LINEAR_KINDS) <= 256


def test_a_free_region_costs_nothing():
    points = path(measure(BASE, free_until, LIMITS))
    assert all(getattr(points[0].k_chunk, kind) >= 32 for kind in LINEAR_KINDS)


def test_limits_are_respected_and_a_hopeless_kind_stays_at_zero():
    limits = {**LIMITS, "qkv": 24, "o": 0}
    dear = lambda kind, k: curve(kind, k) + (1000 if kind == "down" else 0)  # noqa: E731
    last = path(measure(BASE, dear, limits))[-1].k_chunk
    assert last.qkv == 24
    assert (last.o, last.down) == (0, 0)
    assert last.gate_up > 0


def test_nothing_affordable_gives_the_zero_table_everywhere():
    points = path(measure(BASE, lambda kind, k: BASE[kind] + 1000, LIMITS))
    assert len(points) == 1
    assert at(points, 20).total == 0


def test_measuring_stops_when_no_kind_can_pay():
    asked = set()

    def steep(kind, k):
        asked.add(k)
        return BASE[kind] + 3.0 * k

    measure(BASE, steep, LIMITS)
    assert max(asked) == 16
    assert asked < set(CANDIDATES)


def test_other_time_widens_the_budget():
    alone, whole = measure(BASE, curve, LIMITS), measure(BASE, curve, LIMITS, other=200.0)
    assert at(path(whole), 10).total > at(path(alone), 10).total


def test_detents_take_the_last_table_that_fits():
    points = path(measure(BASE, curve, LIMITS))
    for detent in DETENTS:
        fitting = [p for p in points if p.slowdown_pct <= detent]
        assert at(points, detent) == fitting[-1].k_chunk


def test_gain_follows_the_measured_perplexities():
    """3-bit SmolLM2: ppl at k 0, 8, 16, 32, 64, 128; equal gains must mean equal drops of log ppl."""
    ppl = {0: 156.6, 8: 72.7, 16: 60.6, 32: 51.8, 64: 44.3, 128: 37.9}
    drops = [math.log(ppl[0] / ppl[k]) for k in ppl]
    unit = drops[-1] / gain(128)
    assert [unit * gain(k) for k in ppl] == pytest.approx(drops, abs=0.05)


def test_impossible_base_times_are_refused():
    with pytest.raises(ValueError, match="positive"):
        Costs({"qkv": 0.0}, {})
