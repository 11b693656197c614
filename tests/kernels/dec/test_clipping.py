"""Clipped ranges against a search written out."""

import numpy as np
import pytest
import torch

from kernels.dec import dequantise, quantise_clipped, quantise_rtn
from kernels.dec.clipping import SHARES


def drawn(n_out, n_in, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n_out, n_in, generator=generator), torch.rand(n_in, generator=generator)


def searched(row, importance, bits, shares):
    """(step, lowest) of one group by the definition."""
    low, high, top = min(row.min(), 0.0), max(row.max(), 0.0), 2**bits - 1
    found = []
    for share in shares:
        step = (high - low) * share / top
        lowest = np.rint(low * share / step)
        codes = np.clip(np.rint(row / step), lowest, lowest + top)
        found.append(((importance * (codes * step - row) ** 2).sum(), step, lowest))
    return min(found, key=lambda entry: entry[0])[1:]


@pytest.mark.parametrize("bits", [3, 4])
def test_ranges_match_a_search_over_shares(bits):
    weight, importance = drawn(5, 80)
    base = quantise_clipped(weight, importance, bits, group=32)
    for row in range(5):
        for number, start in enumerate(range(0, 80, 32)):
            part = slice(start, start + 32)
            step, lowest = searched(weight[row, part].numpy(), importance[part].numpy(), bits, SHARES)
            assert float(base.scale[row, number]) == pytest.approx(step, rel=2**-8)
            assert float(base.zero[row, number]) == pytest.approx(
                (lowest + 2 ** (bits - 1)) * step, rel=2**-8, abs=1e-6
            )


def test_every_code_is_the_nearest():
    weight, importance = drawn(7, 70)
    base = quantise_clipped(weight, importance, 3, group=32)
    index = torch.arange(70) // 32
    levels = (torch.arange(8) - 4)[:, None, None] * base.scale[:, index] + base.zero[:, index]
    assert torch.equal((dequantise(base) - weight).abs(), (levels - weight).abs().amin(0))


def test_tables_are_exact_in_bfloat16():
    base = quantise_clipped(*drawn(4, 300), 4)
    for table in (base.scale, base.zero):
        assert torch.equal(table, table.bfloat16().float())


def test_clipping_helps_where_one_unimportant_weight_is_huge():
    weight, importance = drawn(16, 128)
    weight[:, 0], importance[0] = 12.0, 0.0
    lost = [
        (importance * (dequantise(base) - weight) ** 2).sum()
        for base in (quantise_clipped(weight, importance, 3), quantise_rtn(weight, 3))
    ]
    assert lost[0] < 0.5 * lost[1]


def test_a_row_of_zeros_stays_zero():
    assert not dequantise(quantise_clipped(torch.zeros(2, 64), torch.ones(64), 3)).any()


def test_a_weight_that_is_not_finite_is_refused():
    with pytest.raises(ValueError, match="not finite"):
        quantise_clipped(torch.full((1, 8), torch.nan), torch.ones(8), 3)
