"""What counts as a call's time."""

import pytest

from runtime.engine.bench_linears import typical


def test_disturbed_calls_do_not_count():
    calm = [[10.0, 20.0]] * 16
    disturbed = [[10.0 + 8000.0 * (i % 3 > 0), 20.0 + 8000.0 * (i % 2)] for i in range(24)]
    assert typical(calm) == pytest.approx(15.0)
    assert typical(disturbed) == pytest.approx(15.0)


def test_a_single_lucky_call_does_not_count_either():
    assert typical([[1.0]] + [[10.0]] * 23) == pytest.approx(10.0)
