"""Every target over seeds, inputs that were findings, and mutations; the long run is `tests.fuzz.run`."""

from __future__ import annotations

import faulthandler
import os
import sys
from random import Random

import pytest

if sys.platform != "linux":
    pytest.skip("the limits are those of Linux", allow_module_level=True)

from tests.fuzz import harness
from tests.fuzz.child import mutated

MUTATIONS = int(os.environ.get("FUZZ_MUTATIONS", "0"))
HANG_S = 120


@pytest.fixture(autouse=True)
def _a_hang_ends_the_process():
    faulthandler.dump_traceback_later(HANG_S, exit=True, file=sys.__stderr__)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.mark.parametrize("name", harness.names())
def test_hostile_inputs_are_refused_within_the_limits(name, tmp_path):
    target = harness.load(name)
    inputs = harness.start(target, tmp_path)
    random = Random(name)
    changed = [mutated(target, random.choice(inputs), random) for _ in range(MUTATIONS or target.mutations)]
    for data in [*inputs, *changed]:
        finding = harness.run(target, data, tmp_path).finding
        assert finding is None, f"{data[:300]!r}\n{finding.text[:3000]}"
