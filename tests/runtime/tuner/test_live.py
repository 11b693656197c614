"""What a front end hears of tuning: every point once, and what the result means for a token."""

import json

import pytest

from runtime.layers.base import LINEAR_KINDS
from runtime.progress import JobContext
from runtime.tuner import jobs, live, tuning
from runtime.tuner.costs import knee
from runtime.tuner.live import Live, WholeToken
from runtime.tuner.measurer import NO_PROGRAMS, Launch
from tests.runtime.tuner.simulated import BASE_US, SimulatedDevice


@pytest.fixture
def heard():
    return []


@pytest.fixture
def ctx(heard):
    return JobContext("tune", heard.append, lambda: False)


def points(events):
    return [tuple(point) for event in events for point in (event.data or {}).get("points", ())]


def test_points_that_were_held_back_come_with_the_next_report(ctx, heard):
    found = Live(ctx)
    found.counted(0, 3)
    found.point("o", NO_PROGRAMS, 4, 30.12345)
    found.counted(1, 3)
    found.point("o", Launch(16, 8, 1), 8, 31.0)
    found.counted(3, 3)
    assert [event.done for event in heard] == [0, 3], "the middle one came too soon after the first"
    assert points(heard) == [("o", 0, 4, 30.123), ("o", 16, 8, 31.0)]


def test_every_point_of_a_tuning_is_told_once_and_curves_grow_side_by_side(ctx, heard, monkeypatch):
    monkeypatch.setattr("runtime.progress.MIN_INTERVAL_S", 0.0)
    device = SimulatedDevice(2.7)
    asked, measure = [], device.corrected_us
    device.corrected_us = lambda kind, n, k: asked.append((kind, n.programs, k)) or measure(kind, n, k)
    jobs.run(jobs.Target(device, machine=None), ctx)
    told = points(heard)
    assert [point[:3] for point in told] == asked
    first_round = told[: 4 * len(device.splits)]
    assert {point[0] for point in first_round} == set(LINEAR_KINDS)
    base = next(event.data["base_us"] for event in heard if event.data)
    assert base == pytest.approx({kind: 2.7 * us for kind, us in BASE_US.items()}, abs=1e-3)


def test_findings_are_the_chosen_curves_with_their_knees():
    tuned = tuning.run(SimulatedDevice(2.7))
    token = WholeToken(500.0, 400.0, 32, dict.fromkeys(LINEAR_KINDS, 4096))
    found = json.loads(json.dumps(live.findings(tuned, token)))
    assert found["token"] == {"us": 500.0, "of_us": 400.0, "layers": 32, "inputs": dict(token.inputs)}
    for kind in LINEAR_KINDS:
        curve, base = tuned.costs.added[kind], tuned.costs.base.linears[kind]
        assert found["knees"][kind] == knee(curve, base)
        assert found["curves"][kind] == [[k, pytest.approx(base + us, abs=1e-3)] for k, us in curve.items()]
    assert "token" not in live.findings(tuned, None)
