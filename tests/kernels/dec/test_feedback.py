"""Rounding with feedback against the usual form of GPTQ, and against what it promises."""

import pytest
import torch

from kernels.dec import GroupCodes, quantise_clipped, round_with_feedback
from kernels.dec.feedback import COLUMNS_AT_ONCE
from tests.fakes.quantisation import loss, problem


def gptq(weight, moment, base):
    """Codes by GPTQ as published: inverse of H, one column after another, each spreading its error."""
    order = moment.diagonal().argsort(stable=True).flip(0)
    inverse = torch.linalg.inv(moment[order][:, order].double())
    upper = torch.linalg.cholesky(inverse, upper=True)
    rows, codes = weight[:, order].double(), torch.empty_like(weight, dtype=torch.uint8)
    half = 2 ** (base.bits - 1)
    for j, column in enumerate(order.tolist()):
        scale, zero = base.scale[:, column // base.group], base.zero[:, column // base.group]
        code = ((rows[:, j] - zero) / scale).round().clamp(-half, half - 1)
        error = (rows[:, j] - (code * scale + zero)) / upper[j, j]
        rows[:, j:] -= error[:, None] * upper[j, j:]
        codes[:, column] = (code + half).to(torch.uint8)
    return codes


@pytest.mark.parametrize("n_in", [40, 300])
def test_codes_are_those_of_gptq(n_in):
    weight, moment = problem(6, n_in)
    base = quantise_clipped(weight, moment.diagonal(), 3, group=32)
    assert n_in < COLUMNS_AT_ONCE or n_in % COLUMNS_AT_ONCE
    codes = round_with_feedback(weight, moment, base).codes
    assert (codes != gptq(weight, moment, base)).float().mean() < 0.01


def test_loss_is_far_below_rounding_to_nearest():
    weight, moment = problem(20, 200)
    base = quantise_clipped(weight, moment.diagonal(), 3)
    assert loss(weight, moment, round_with_feedback(weight, moment, base)) < 0.6 * loss(weight, moment, base)


def test_uncorrelated_inputs_give_the_nearest_codes():
    weight = problem(9, 150)[0]
    base = quantise_clipped(weight, torch.ones(150), 4)
    again = round_with_feedback(weight, torch.diag(torch.rand(150) + 0.1), base)
    assert torch.equal(again.codes, base.codes)
    assert torch.equal(again.scale, base.scale)


def test_two_columns_by_hand():
    """The heavier column is rounded as it is, the lighter one takes over what that lost."""
    base = GroupCodes(3, 2, torch.zeros(1, 2, dtype=torch.uint8), torch.ones(1, 1), torch.zeros(1, 1))
    moment = torch.tensor([[1.0, 1.0], [1.0, 2.0]])
    codes = round_with_feedback(torch.tensor([[0.2, 0.4]]), moment, base).codes
    assert codes.tolist() == [[4 + 1, 4 + 0]]


def test_a_moment_that_rounding_made_indefinite_still_serves():
    weight, moment = problem(6, 30)
    moment -= 1.01 * torch.linalg.eigvalsh(moment)[0] * torch.eye(30)
    base = quantise_clipped(weight, moment.diagonal(), 3)
    assert loss(weight, moment, round_with_feedback(weight, moment, base)) < loss(weight, moment, base)


def test_rows_do_not_depend_on_each_other():
    weight, moment = problem(50, 90)
    base = quantise_clipped(weight, moment.diagonal(), 3)
    whole = round_with_feedback(weight, moment, base)
    part = GroupCodes(3, base.group, base.codes[7:9], base.scale[7:9], base.zero[7:9])
    assert torch.equal(round_with_feedback(weight[7:9], moment, part).codes, whole.codes[7:9])
