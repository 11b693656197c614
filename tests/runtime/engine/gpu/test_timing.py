"""Pairs of steps: when they are timed, what they say, and that nobody waits for them."""

import pytest
import torch

from runtime.engine.gpu.timing import PairedSteps, Stopwatch
from tests.runtime.engine.gpu.device_models import DEVICE


class Watch:
    """A device whose steps take what they say, and whose work is done up to `now`."""

    def __init__(self):
        self.given = self.now = 0.0

    def mark(self):
        return self.given

    def passed(self, mark):
        return mark <= self.now

    def wait(self, mark):
        raise AssertionError("a pair was waited for")

    def seconds(self, start, end):
        assert end <= self.now
        return end - start

    def step(self, seconds):
        def run():
            self.given += seconds

        return run


@pytest.fixture
def watch():
    return Watch()


def test_pairs_are_frequent_behind_a_move_and_rare_later(watch):
    pairs = PairedSteps(watch)
    steps = [number for number in range(1, 301) if pairs.due()]
    assert steps == [4, 8, 16, 32, 64, 128, 192, 256]
    pairs.reset()
    assert [number for number in range(1, 10) if pairs.due()] == [4, 8]


def test_a_pair_is_the_base_and_then_the_step_itself(watch):
    order = []
    names = ("base", "between", "corrected")
    PairedSteps(watch).run(*(lambda name=name: order.append(name) for name in names))
    assert order == ["base", "between", "corrected"]


def test_pairs_count_once_the_device_has_done_them(watch):
    pairs = PairedSteps(watch)
    assert pairs.pct is None
    pairs.run(watch.step(2.0), watch.step(0.5), watch.step(2.5))
    pairs.run(watch.step(2.0), watch.step(0.5), watch.step(3.0))
    assert pairs.pct is None
    watch.now = 5.4
    assert pairs.pct == pytest.approx(25.0)
    watch.now = watch.given
    assert pairs.pct == pytest.approx(37.5)


def test_the_median_of_many_pairs_and_of_the_latest(watch):
    pairs = PairedSteps(watch)
    for slowdown in (5.0, 6.0, 400.0):
        pairs.run(watch.step(1.0), watch.step(0.5), watch.step(1.0 + slowdown / 100))
    watch.now = watch.given
    assert pairs.pct == pytest.approx(6.0)
    for _ in range(48):
        pairs.run(watch.step(1.0), watch.step(0.5), watch.step(1.1))
        watch.now = watch.given
        last = pairs.pct
    assert last == pytest.approx(10.0)


def test_a_step_that_was_faster_than_the_base_is_no_slowdown(watch):
    pairs = PairedSteps(watch)
    pairs.run(watch.step(2.0), watch.step(0.5), watch.step(1.9))
    watch.now = watch.given
    assert pairs.pct == pytest.approx(-5.0)


def test_a_move_forgets_pairs_measured_and_under_way(watch):
    pairs = PairedSteps(watch)
    pairs.run(watch.step(1.0), watch.step(0.5), watch.step(2.0))
    watch.now = watch.given
    assert pairs.pct == pytest.approx(100.0)
    pairs.run(watch.step(1.0), watch.step(0.5), watch.step(2.0))
    pairs.reset()
    watch.now = watch.given
    assert pairs.pct is None


def test_a_stopwatch_takes_the_time_of_work_before_a_mark():
    watch = Stopwatch(DEVICE)
    x = torch.ones(500, 500, device=DEVICE)
    start = watch.mark()
    x @ x
    end = watch.mark()
    watch.wait(end)
    assert watch.passed(start)
    assert watch.passed(end)
    assert 0 < watch.seconds(start, end) < 60


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_mark_has_not_passed_while_the_device_works():
    watch = Stopwatch(DEVICE)
    start = watch.mark()
    torch.cuda._sleep(200_000_000)
    end = watch.mark()
    assert not watch.passed(end)
    watch.wait(end)
    assert watch.passed(end)
    assert watch.seconds(start, end) > 0.01
