import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.int8x import dequantise, quantise, reference


def test_per_tensor_known_answer():
    weight = torch.tensor([[127.0, -63.5, 0.5], [1.5, -2.5, -127.0]])
    q, scale = quantise(weight, "tensor")
    assert scale.tolist() == [1.0]
    assert q.tolist() == [[127, -64, 0], [2, -2, -127]]
    assert torch.equal(dequantise(q, scale), q.float())


def test_per_row_uses_each_rows_absmax():
    weight = torch.tensor([[1.0, -0.5], [0.0, 0.0], [-8.0, 2.0]])
    q, scale = quantise(weight, "row")
    assert torch.equal(scale, torch.tensor([1 / 127, 1.0, 8 / 127], dtype=torch.float32))
    assert q.tolist() == [[127, -64], [0, 0], [-127, 32]]


@pytest.mark.parametrize("granularity", ["tensor", "row"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_matches_division_and_rounding_in_float32(granularity, dtype):
    weight = torch.randn(40, 33, generator=torch.Generator().manual_seed(3)).to(dtype)
    q, scale = quantise(weight, granularity)
    expected, step = reference.quantise(weight, granularity == "row")
    assert torch.equal(q, expected)
    assert torch.equal(scale, step)
    assert (dequantise(q, scale) - weight.float()).abs().max() <= 0.5001 * step.max()


@given(st.integers(1, 9), st.integers(1, 300), st.sampled_from([1e-30, 1e-3, 1.0, 1e30]), st.integers(0, 99))
@settings(max_examples=50, deadline=None)
def test_matches_the_reference_for_any_shape_and_size_of_weights(n_out, n_in, size, seed):
    weight = torch.randn(n_out, n_in, generator=torch.Generator().manual_seed(seed)) * size
    for granularity in ("tensor", "row"):
        q, scale = quantise(weight.t().contiguous().t(), granularity)
        expected, step = reference.quantise(weight, granularity == "row")
        assert torch.equal(q, expected)
        assert torch.equal(scale, step)


def test_too_large_for_float32():
    with pytest.raises(ValueError, match="finite"):
        quantise(torch.full((2, 2), 1e300, dtype=torch.float64), "tensor")


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("granularity", ["tensor", "row"])
def test_not_finite(bad, granularity):
    weight = torch.ones(3, 4)
    weight[1, 2] = bad
    with pytest.raises(ValueError, match="finite"):
        quantise(weight, granularity)


def test_subnormal_weights_do_not_divide_by_zero():
    q, scale = quantise(torch.full((2, 2), 1e-44), "tensor")
    assert torch.isfinite(scale).all()
    assert q.tolist() == [[0, 0], [0, 0]]
