"""The room for a model, before and after the machine was measured."""

import pytest

from app.surroundings import room
from runtime.sources import catalogue
from runtime.sources.fit import Room, fit

CPU = {"name": "CPU", "kind": "cpu", "usable": True}
GLANCE = {"devices": [CPU, {"name": "GPU", "kind": "cuda:0"}], "memory": {"available_bytes": 9}}


def test_a_report_that_says_nothing_gives_no_room():
    assert room({}) is None


def test_what_was_measured_counts():
    known = {"kind": "cuda:0", "free_bytes": 7}
    assert room({**GLANCE, "devices": [CPU, known], "answering": "cuda:0"}) == Room(7, 9)
    assert room({**GLANCE, "answering": "cpu"}) == Room(None, 9)


@pytest.mark.parametrize(("wanted", "on_gpu"), [("", True), ("cpu", False), ("nonsense", True)])
def test_a_gpu_that_nobody_has_looked_at_yet_takes_the_best_form(monkeypatch, wanted, on_gpu):
    monkeypatch.setenv("DECDEC_DEVICE", wanted)
    found = fit(catalogue.default().shape, room(GLANCE), 0)
    assert (found.base, bool(found.host)) == ("awq4", on_gpu)
