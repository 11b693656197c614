"""Tuning waits for an idle machine, but not for ever."""

import pytest

from runtime.errors import Interrupted
from runtime.progress import JobContext
from runtime.tuner import quiet


@pytest.fixture
def clock(monkeypatch):
    """Busy samples of a second each, without waiting."""
    now = [0.0]
    monkeypatch.setattr(quiet.time, "monotonic", lambda: now[0])

    def samples(values):
        values = iter(values)

        def sample():
            now[0] += 1.0
            return next(values)

        monkeypatch.setattr(quiet, "busy_cores", sample)

    return samples


def test_an_idle_machine_is_measured_at_once(clock):
    clock([0.1])
    assert quiet.wait_for_quiet(JobContext.silent())


def test_it_waits_until_others_are_done(clock):
    clock([1.0, 0.9, 0.2])
    assert quiet.wait_for_quiet(JobContext.silent())


def test_it_goes_on_in_the_end_and_says_so(clock):
    clock([1.0] * 100)
    events = []
    assert not quiet.wait_for_quiet(JobContext("tune", events.append, lambda: False))
    assert "tune again" in events[-1].note


def test_waiting_can_be_stopped(clock):
    clock([1.0] * 100)
    with pytest.raises(Interrupted):
        quiet.wait_for_quiet(JobContext("tune", lambda e: None, lambda: True))


def test_a_sleeping_machine_counts_no_more_than_it_has(monkeypatch):
    monkeypatch.setattr(quiet, "SAMPLE_S", 0.05)
    assert 0 <= quiet.busy_cores() <= quiet.psutil.cpu_count()
