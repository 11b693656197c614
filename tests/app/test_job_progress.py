"""How far a job is, and what is left of it."""

import pytest

from app.job_progress import PREPARING, TUNING, JobProgress
from runtime.protocol.events import Progress

PLAN = {"a": 10.0, "b": 30.0, "c": 60.0}


def progress(step, done, total=10):
    return Progress("job", step, done, total, "blocks")


class Timed(JobProgress):
    """With a clock that is moved by hand."""

    def __init__(self):
        super().__init__(PLAN, lambda: self.now)
        self.now = 100.0


@pytest.mark.parametrize(
    ("reports", "share"),
    [
        ([], 0.0),
        ([("a", 5)], 0.05),
        ([("a", 10)], 0.10),
        ([("a", 5), ("b", 0)], 0.10),
        ([("b", 5)], 0.25),
        ([("a", 3), ("c", 5)], 0.70),
        ([("a", 10), ("surprise", 5), ("b", 5)], 0.25),
        ([("a", 10), ("b", 5), ("surprise", 1)], 0.40),
        ([("c", 10)], 1.0),
    ],
)
def test_the_share_of_the_whole(reports, share):
    job = Timed()
    for step, done in reports:
        job.push(progress(step, done))
    assert job.share == pytest.approx(share)


def test_without_a_plan_nothing_is_said():
    job = JobProgress()
    job.push(progress("a", 5))
    assert (job.share, job.left_s, job.later) == (0.0, None, [])


def test_time_left_is_told_when_something_has_moved():
    job = Timed()
    job.push(progress("b", 0))
    assert job.left_s is None
    job.now += 30
    job.push(progress("b", 5))
    assert job.left_s == pytest.approx(30 * 0.75 / 0.15)


def test_what_an_earlier_run_did_is_no_speed_of_this_one():
    job = Timed()
    job.push(progress("c", 0))
    job.now += 6
    job.push(progress("c", 1))
    assert job.left_s == pytest.approx(54)


def test_how_fast_something_is_fetched_says_nothing_of_what_follows():
    job = Timed()
    job.plan = {"download": 50.0, "quantise": 50.0}
    job.push(progress("download", 0))
    job.now += 1
    job.push(progress("download", 10))
    assert job.left_s is None
    job.now += 1
    job.push(progress("quantise", 0))
    job.now += 30
    job.push(progress("quantise", 5))
    assert job.left_s == pytest.approx(30)


def test_a_step_of_unknown_length_counts_when_it_is_over():
    job = Timed()
    job.push(progress("a", 5, 0))
    assert job.share == 0.0
    job.push(progress("b", 0))
    assert job.share == pytest.approx(0.1)


def test_what_comes_later():
    job = Timed()
    assert job.later == ["a", "b", "c"]
    job.push(progress("b", 1))
    assert job.later == ["c"]


def test_plans_name_the_steps_that_the_engine_reports():
    assert next(iter(PREPARING)) == "download"
    assert {"sensitivity", "encode", "quantise"} < set(PREPARING)
    assert list(TUNING)[-1] == "check"
