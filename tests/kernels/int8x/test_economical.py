"""Rounding that knows what a code costs, against a plain search over every weight's choices."""

import pytest
import torch

from kernels.int8x import plan_adaptive, quantise
from kernels.int8x.economical import ERROR_PER_BIT, round_economically
from kernels.int8x.scales import Scales


def gaussian(n_out=64, n_in=96, spread=2.0, seed=0):
    generator = torch.Generator().manual_seed(seed)
    rows = torch.exp(0.5 * torch.randn(n_out, 1, generator=generator))
    return torch.randn(n_out, n_in, generator=generator) * spread * rows


def unit_steps(weight):
    return Scales("aware", torch.ones(1), torch.full((len(weight),), 128, dtype=torch.uint8))


def code_bits(q, width, short):
    """Bits that adaptive planes spend on one value: plane, then short code, then byte."""
    m = 2 ** (width - 1) - 1
    if width == 8 or abs(q) <= m:
        return width
    if not short:
        return width + 8
    index = 2 * (abs(q) - m - 1) + (q < 0)
    return width + short + (8 if index >= 2**short - 1 else 0)


def cheapest(value, width, short, error_per_bit):
    """Among nearest step, end of the plane, and last short code: least error plus price of the bits."""
    sign = -1 if value < 0 else 1
    nearest = sign * min(round(abs(value)), 127)
    m = 2 ** (width - 1) - 1
    if width == 8 or abs(nearest) <= m:
        return {nearest}
    ends = [nearest, sign * m]
    if short and abs(nearest) > (last := m + 2 ** (short - 1) - (sign < 0)) > m:
        ends.append(sign * last)
    costs = {q: (value - q) ** 2 + error_per_bit * code_bits(q, width, short) for q in ends}
    least = min(costs.values())
    return {q for q, cost in costs.items() if cost <= least + 1e-4}


def test_every_weight_takes_its_cheapest_step():
    weight = gaussian()
    scales = unit_steps(weight)
    plan = plan_adaptive(quantise(weight, scales))
    q = round_economically(weight, scales, rounds=1)
    for place, row in enumerate(plan.order):
        width, short = int(plan.widths[place // 16]) & 15, int(plan.widths[place // 16]) >> 4
        for value, chosen in zip(weight[row].tolist(), q[row].tolist(), strict=True):
            assert chosen in cheapest(value, width, short, ERROR_PER_BIT)


def test_without_a_price_it_is_plain_rounding():
    weight = gaussian()
    scales = unit_steps(weight)
    assert torch.equal(round_economically(weight, scales, 0.0), quantise(weight, scales))


@pytest.mark.parametrize("spread", [0.7, 2.0, 5.0])
def test_bits_and_error_together_get_less(spread):
    weight = gaussian(spread=spread)
    scales = unit_steps(weight)

    def cost(q):
        return float((weight - q).square().sum()) + ERROR_PER_BIT * 8 * plan_adaptive(q).nbytes

    plain, economical = quantise(weight, scales), round_economically(weight, scales)
    assert cost(economical) < cost(plain)
    assert plan_adaptive(economical).nbytes < plan_adaptive(plain).nbytes
    assert (economical.int().abs() <= plain.int().abs()).all()


def test_factors_are_part_of_the_step():
    weight = gaussian()
    rows = torch.randint(120, 136, (64,), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))
    columns = torch.randint(120, 136, (96,), dtype=torch.uint8, generator=torch.Generator().manual_seed(2))
    scales = Scales("aware", torch.tensor([0.5]), rows, columns)
    in_steps = weight * scales.column_scale() / scales.row_scale(64)[:, None]
    expected = round_economically(in_steps, unit_steps(weight))
    assert (round_economically(weight, scales) != expected).sum() <= 2


def test_what_is_not_finite_is_refused():
    weight = gaussian()
    weight[3, 4] = torch.inf
    with pytest.raises(ValueError, match="not finite"):
        round_economically(weight, unit_steps(weight))
