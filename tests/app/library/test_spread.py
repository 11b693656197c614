"""Histogram, bars and axis, counted by hand."""

import pytest

from app.library.spread import Histogram, Measured, axis, bar, cells_for, columns, histogram


def measured(bits, weights=1, entropy=0.0):
    return Measured("k", weights, bits, entropy, 0.0)


def test_shares_by_weights_in_the_finest_steps_that_fit():
    tensors = [measured(4.0, 10), measured(4.04, 20), measured(4.12, 30), measured(5.01, 40)]
    fine = histogram(tensors, 100)
    assert (fine.low, fine.step, len(fine.shares)) == (4.0, 0.05, 21)
    assert [fine.shares[i] for i in (0, 1, 2, 20)] == [0.3, 0.0, 0.3, 0.4]
    coarse = histogram(tensors, 5)
    assert (coarse.low, coarse.step, coarse.shares) == (4.0, 0.25, (0.6, 0.0, 0.0, 0.0, 0.4))
    assert coarse.high == 5.25
    assert histogram(tensors, 1).step == 1.0, "nothing finer fits, and nothing coarser is offered"


def test_a_value_at_the_edge_of_a_bin_lies_in_it():
    for value in (4.3, 5.1, 5.55, 7.65):
        assert histogram([measured(value)], 50).low == pytest.approx(value)


def test_nothing_to_count():
    with pytest.raises(ValueError, match="nothing"):
        histogram([], 10)


def test_columns_fill_the_height_and_nothing_vanishes():
    assert columns([1.0, 0.5, 0.0, 0.001], 2, 1) == ["█   ", "██ ▁"]
    assert columns([0.75, 0.25], 2, 2) == ["██  ", "██▆▆"]
    assert columns([], 2, 1) == ["", ""]
    assert columns([0.0], 1, 3) == ["   "]


def test_labels_stand_at_their_bins_and_do_not_touch():
    assert axis(Histogram(4.0, 0.25, (0.1,) * 8), 2) == "4       5       6"
    assert axis(Histogram(4.3, 0.1, (0.1,) * 8), 4) == "    4.4     4.6     4.8     5"
    assert axis(Histogram(4.25, 0.25, (0.1,) * 4), 4) == f"{'':4}4.5{'':5}5"


@pytest.mark.parametrize(("bins", "width", "cells"), [(10, 100, 4), (30, 70, 2), (200, 100, 1), (0, 10, 4)])
def test_columns_are_as_wide_as_fits(bins, width, cells):
    assert cells_for(bins, width) == cells


@pytest.mark.parametrize(
    ("bits", "entropy", "expected"),
    [(4, 3, (12, 4, 16)), (8, 8, (32, 0, 0)), (9, 2, (8, 24, 0)), (2, 3, (8, 0, 24))],
)
def test_a_bar_is_as_long_as_a_byte(bits, entropy, expected):
    assert bar(measured(bits, entropy=entropy), 32) == expected
