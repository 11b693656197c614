"""What counts as a call's time."""

import pytest

from runtime.engine.bench_linears import SPREAD, typical


def test_disturbed_calls_do_not_count():
    calm = [[10.0, 11.0]] * 16
    disturbed = [[10.0 + 8000.0 * (i % 3 > 0), 11.0 + 8000.0 * (i % 2)] for i in range(24)]
    assert typical(calm) == pytest.approx(10.5)
    assert typical(disturbed) == pytest.approx(10.5)


def test_a_few_undisturbed_calls_are_enough():
    steps = [[100.0 + j for j in range(30)] for _ in range(24)]
    for i in range(0, 24, 2):
        steps[i][i] = 10.0
    assert typical(steps) == pytest.approx(SPREAD * 10.0)


def test_a_single_lucky_call_does_not_count():
    assert typical([[1.0, 10.0]] + [[10.0, 10.0]] * 199) == pytest.approx(10.0)
