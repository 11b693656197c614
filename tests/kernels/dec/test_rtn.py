"""The round-to-nearest base against brute force and against torch's own int4 product."""

import pytest
import torch

from kernels.dec import (
    GroupCodes,
    dequantise,
    group_count,
    int4_op_codes,
    int4_op_group,
    int4_op_tables,
    quantise_rtn,
)


def weights(n_out: int, n_in: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n_out, n_in, generator=generator) * 0.05


def bf16(value: float) -> float:
    return float(torch.tensor(value).bfloat16())


@pytest.mark.parametrize("bits", [3, 4])
@pytest.mark.parametrize("n_in", [64, 128, 200])
def test_codes_match_a_loop_over_groups(bits, n_in):
    weight = weights(3, n_in)
    base = quantise_rtn(weight, bits)
    for row in range(3):
        for number, start in enumerate(range(0, n_in, 128)):
            group = weight[row, start : start + 128].tolist()
            low, high = min(*group, 0), max(*group, 0)
            step = (high - low) / (2**bits - 1)
            zero = (round(low / step) + 2 ** (bits - 1)) * step
            assert base.scale[row, number].item() == pytest.approx(bf16(step), rel=1e-6)
            assert base.zero[row, number].item() == pytest.approx(bf16(zero), abs=1e-6)
            levels = [(code - 2 ** (bits - 1)) * step + zero for code in range(2**bits)]
            for column, value in enumerate(group):
                chosen = abs(levels[int(base.codes[row, start + column])] - value)
                assert chosen <= min(abs(level - value) for level in levels) + 1e-6


@pytest.mark.parametrize("bits", [3, 4])
@pytest.mark.parametrize(("n_in", "op_group"), [(576, 64), (1536, 128), (96, 32), (256, 128)])
def test_dequantised_base_is_what_the_torch_int4_product_computes(bits, n_in, op_group):
    base = quantise_rtn(weights(32, n_in), bits)
    group, tables = int4_op_tables(base, torch.float32)
    assert group == op_group
    packed = torch._convert_weight_to_int4pack_for_cpu(int4_op_codes(base), 2)
    product = torch.ops.aten._weight_int4pack_mm_for_cpu(torch.eye(n_in), packed, group, tables)
    torch.testing.assert_close(product.t(), dequantise(base), rtol=1e-6, atol=1e-7)


def test_tables_survive_bfloat16():
    base = quantise_rtn(weights(16, 576), 4)
    exact, rounded = int4_op_tables(base, torch.float32)[1], int4_op_tables(base)[1]
    assert torch.equal(exact, rounded.float())


def test_a_constant_group_is_kept_and_error_is_half_a_step():
    weight = weights(4, 256)
    weight[:, :128] = 0.5
    base = quantise_rtn(weight, 3)
    torch.testing.assert_close(dequantise(base)[:, :128], weight[:, :128], rtol=2**-8, atol=0)
    assert not dequantise(quantise_rtn(torch.zeros(2, 128), 4)).any()
    step = base.scale[:, 1:].amax()
    assert (dequantise(base) - weight).abs().max() <= 0.55 * step


def test_the_short_last_group_has_its_own_range():
    weight = weights(2, 192)
    weight[:, 128:] *= 100
    base = quantise_rtn(weight, 4)
    assert base.scale.shape == (2, 2)
    assert group_count(192, 128) == 2
    assert (base.scale[:, 1] > 20 * base.scale[:, 0]).all()


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="finite"):
        quantise_rtn(torch.tensor([[1.0, float("nan")]]), 4)
    with pytest.raises(ValueError, match="3 or 4"):
        quantise_rtn(torch.ones(2, 128), 5)
    with pytest.raises(ValueError, match="no group"):
        int4_op_group(100, 128)
    with pytest.raises(ValueError, match="must be"):
        GroupCodes(4, 128, torch.zeros(2, 256, dtype=torch.uint8), torch.ones(2, 1), torch.ones(2, 2))
