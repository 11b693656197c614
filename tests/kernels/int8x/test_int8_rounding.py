import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.int8x import Quantised, Scales, absmax_scales, dequantise, factors, quantise, reference


def rounded(weight, granularity):
    scales = absmax_scales(weight, granularity)
    return quantise(weight, scales), scales


def test_per_tensor_known_answer():
    weight = torch.tensor([[127.0, -63.5, 0.5], [1.5, -2.5, -127.0]])
    q, scales = rounded(weight, "tensor")
    assert scales.scale.tolist() == [1.0]
    assert q.tolist() == [[127, -64, 0], [2, -2, -127]]
    assert torch.equal(dequantise(q, scales), q.float())


def test_per_row_uses_each_rows_absmax():
    weight = torch.tensor([[1.0, -0.5], [0.0, 0.0], [-8.0, 2.0]])
    q, scales = rounded(weight, "row")
    assert torch.equal(scales.scale, torch.tensor([1 / 127, 1.0, 8 / 127], dtype=torch.float32))
    assert q.tolist() == [[127, -64], [0, 0], [-127, 32]]


def test_aware_known_answer():
    # Codes 144 and 112 stand for 2 and 1/2; step 0.25, rows 1 and 2, columns 2 and 1/2.
    codes = torch.tensor([128, 144, 112]).to(torch.uint8)
    scales = Scales("aware", torch.tensor([0.25]), rows=codes[:2], columns=codes[1:])
    weight = torch.tensor([[1.0, 3.0], [-2.0, 100.0]])
    q = quantise(weight, scales)
    assert q.tolist() == [[8, 6], [-8, 100]]
    assert dequantise(q, scales).tolist() == [[1.0, 3.0], [-2.0, 100.0]]
    far = quantise(weight * 10, scales)
    assert far.tolist() == [[80, 60], [-80, 127]]


@pytest.mark.parametrize("granularity", ["tensor", "row"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_matches_division_and_rounding_in_float32(granularity, dtype):
    weight = torch.randn(40, 33, generator=torch.Generator().manual_seed(3)).to(dtype)
    q, scales = rounded(weight, granularity)
    step = reference.absmax_step(weight, granularity == "row")
    assert torch.equal(q, reference.quantise(weight, step))
    assert torch.equal(scales.scale, step)
    assert (dequantise(q, scales) - weight.float()).abs().max() <= 0.5001 * step.max()


@given(st.integers(1, 9), st.integers(1, 300), st.sampled_from([1e-30, 1e-3, 1.0, 1e30]), st.integers(0, 99))
@settings(max_examples=50, deadline=None)
def test_matches_the_reference_for_any_shape_and_size_of_weights(n_out, n_in, size, seed):
    weight = torch.randn(n_out, n_in, generator=torch.Generator().manual_seed(seed)) * size
    for granularity in ("tensor", "row"):
        q, scales = rounded(weight.t().contiguous().t(), granularity)
        step = reference.absmax_step(weight, granularity == "row")
        assert torch.equal(q, reference.quantise(weight, step))
        assert torch.equal(scales.scale, step)


@given(st.integers(1, 9), st.integers(1, 90), st.booleans(), st.booleans(), st.integers(0, 99))
@settings(max_examples=50, deadline=None)
def test_aware_matches_the_reference(n_out, n_in, with_rows, with_columns, seed):
    generator = torch.Generator().manual_seed(seed)
    weight = torch.randn(n_out, n_in, generator=generator).bfloat16()
    rows, columns = (torch.randint(100, 150, (n,), generator=generator).to(torch.uint8) for n in weight.shape)
    scales = Scales(
        "aware", torch.tensor([0.01]), rows if with_rows else None, columns if with_columns else None
    )
    step = torch.tensor([0.01]) * (factors(rows) if with_rows else 1)
    q = quantise(weight, scales)
    assert torch.equal(q, reference.quantise(weight, step, factors(columns) if with_columns else None))
    values = q.float() * step[:, None] / (factors(columns) if with_columns else 1)
    assert torch.equal(dequantise(q, scales), values)
    assert torch.equal(Quantised(q, scales).dequantise(), values)


def test_too_large_for_float32():
    weight = torch.full((2, 2), 1e300, dtype=torch.float64)
    with pytest.raises(ValueError, match="finite"):
        absmax_scales(weight, "tensor")
    with pytest.raises(ValueError, match="finite"):
        quantise(weight, Scales("tensor", torch.ones(1)))


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("granularity", ["tensor", "row"])
def test_not_finite(bad, granularity):
    weight = torch.ones(3, 4)
    weight[1, 2] = bad
    with pytest.raises(ValueError, match="finite"):
        absmax_scales(weight, granularity)
    with pytest.raises(ValueError, match="finite"):
        quantise(weight, absmax_scales(torch.ones(3, 4), granularity))


def test_subnormal_weights_do_not_divide_by_zero():
    q, scales = rounded(torch.full((2, 2), 1e-44), "tensor")
    assert torch.isfinite(scales.scale).all()
    assert q.tolist() == [[0, 0], [0, 0]]
