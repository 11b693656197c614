"""Tuning begins only where it can end."""

from __future__ import annotations

import pytest

from runtime.errors import DecdecError
from runtime.progress import JobContext
from runtime.store.locks import exclusive
from runtime.tuner import jobs


@pytest.fixture(autouse=True)
def measuring_is_a_failure(monkeypatch):
    def measurer(*args: object) -> None:
        pytest.fail("nothing may be measured")

    monkeypatch.setattr(jobs, "StepMeasurer", measurer)


def test_a_home_that_cannot_be_written_is_told_before_measuring(tmp_path, monkeypatch):
    (tmp_path / "home").write_text("a file where a folder should be")
    monkeypatch.setenv("DECDEC_HOME", str(tmp_path / "home"))
    with pytest.raises(DecdecError, match="Taking a lock failed"):
        jobs.tune({"model": "m"}, JobContext.silent())


def test_two_do_not_measure_each_other(tmp_path, monkeypatch):
    monkeypatch.setenv("DECDEC_HOME", str(tmp_path))
    with exclusive("tune", "Tuning"), pytest.raises(DecdecError, match="Tuning is already going on"):
        jobs.tune({"model": "m"}, JobContext.silent())
