"""A short soak in every run of the tests; a long one by hand: python -m tests.faults.soak --requests 1000."""

import sys

import pytest

from tests.faults.soak.model import BASE, CONTEXT, prepare_tiny
from tests.faults.soak.serving import serving
from tests.faults.soak.soak import faults, soak

REQUESTS = 40


@pytest.mark.skipif(sys.platform == "win32", reason="open files are counted as on POSIX")
async def test_clients_of_every_kind_leave_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setenv("DECDEC_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DECDEC_DEVICE", "cpu")
    name = prepare_tiny(tmp_path)
    with serving("-m", name, "--base", BASE, "--context", str(CONTEXT)) as server:
        samples, kinds = await soak(server, REQUESTS, tokens=4, stages=2, probes=1)
    assert sum(kinds.values()) == REQUESTS
    assert len(kinds) == 7
    assert faults(samples) == []
