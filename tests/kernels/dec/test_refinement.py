"""Refinement against exhaustive search, and never upwards."""

from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.dec import GroupCodes, dequantise, quantise_clipped, quantise_rtn, refine, round_with_feedback
from tests.fakes.quantisation import loss, losses, problem


def best_by_search(weight, moment, scale, zero):
    """Least loss of one row of few columns over all codes of 3 bits."""
    grids = torch.tensor(list(product(range(8), repeat=weight.shape[1])), dtype=torch.uint8)
    base = GroupCodes(3, weight.shape[1], grids, scale.expand(len(grids), 1), zero.expand(len(grids), 1))
    return float(losses(weight.expand(len(grids), -1), moment, base).min())


@pytest.mark.parametrize("seed", range(6))
def test_descent_comes_near_the_best_of_all_codes(seed):
    weight, moment = problem(1, 5, seed)
    start = quantise_clipped(weight, moment.diagonal(), 3)
    base = refine(weight, moment, round_with_feedback(weight, moment, start), 6)
    best = best_by_search(weight, moment, base.scale, base.zero)
    assert loss(weight, moment, base) <= best * 1.5 + 1e-9


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6), st.integers(1, 90), st.sampled_from([3, 4]))
def test_no_row_ever_loses_more(seed, n_in, bits):
    weight, moment = problem(4, n_in, seed)
    moment.diagonal().add_(0.01 * moment.diagonal().mean())
    base = quantise_rtn(weight, bits, group=32)
    before = losses(weight, moment, base)
    for _ in range(3):
        base = refine(weight, moment, base, 1)
        after = losses(weight, moment, base)
        assert bool((after <= before * (1 + 1e-4) + 1e-6).all())
        before = after


def test_single_moves_cannot_help_any_more():
    weight, moment = problem(3, 40)
    base = refine(weight, moment, quantise_clipped(weight, moment.diagonal(), 3, group=32), 60)
    least = losses(weight, moment, base)
    for column, by in product(range(40), (-1, 1)):
        moved = base.codes.clone().int()
        moved[:, column] = (moved[:, column] + by).clamp(0, 7)
        other = GroupCodes(3, 32, moved.to(torch.uint8), base.scale, base.zero)
        assert bool((losses(weight, moment, other) >= least * (1 - 1e-3)).all())


def test_scale_and_zero_are_the_least_squares_of_their_codes():
    """Weights that are exactly codes of another scale and zero are found again."""
    generator = torch.Generator().manual_seed(3)
    codes = torch.randint(0, 8, (6, 64), generator=generator, dtype=torch.uint8)
    true = GroupCodes(3, 64, codes, torch.full((6, 1), 0.5), torch.full((6, 1), 0.25))
    weight, moment = dequantise(true), problem(1, 64)[1]
    off = GroupCodes(3, 64, codes, torch.full((6, 1), 0.484375), torch.full((6, 1), 0.21875))
    assert loss(weight, moment, refine(weight, moment, off, 8)) < 1e-3 * loss(weight, moment, off)


def test_tables_stay_exact_in_bfloat16_and_the_given_base_stays():
    weight, moment = problem(8, 200)
    base = quantise_clipped(weight, moment.diagonal(), 3)
    codes = base.codes.clone()
    better = refine(weight, moment, base, 2)
    assert torch.equal(base.codes, codes)
    for table in (better.scale, better.zero):
        assert torch.equal(table, table.bfloat16().float())
    assert loss(weight, moment, better) < 0.8 * loss(weight, moment, base)
