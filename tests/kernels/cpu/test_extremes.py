"""CPU kernels over sizes and values that no sound model has: a right answer or NaN, never anything else."""

import os

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels import cpu
from kernels.cpu.norms import normalise
from kernels.cpu.products import int8_product
from kernels.dec.chunks import CHUNK
from kernels.dec.residual import dequantise_residual, quantise_residual
from kernels.dec.selection import bucket_mask
from runtime.layers.correction import CorrectionStack
from runtime.model.decoder import rms_norm

EXAMPLES = int(os.environ.get("DECDEC_NUMERIC_EXAMPLES", "30"))
NONE = np.empty(0, np.float32)
BF16_MAX = 3.3895314e38
MAGNITUDES = st.sampled_from([0.0, -0.0, 1e-45, -1e-40, 1.0, -1.0, 0.25, 3.0, 1e30, -BF16_MAX, BF16_MAX])


@pytest.mark.parametrize("n_in", [1, 7, 8, 24, 40, 41, 74, 130])
@pytest.mark.parametrize("tokens", [1, 3])
def test_int8_products_of_any_width_are_right(n_in, tokens):
    torch.manual_seed(n_in)
    q = torch.randint(-127, 128, (5, n_in), dtype=torch.int8)
    x, scale = torch.randn(tokens, n_in).bfloat16(), (torch.rand(5) + 0.5).bfloat16()
    exact = (x.double() @ q.double().t()) * scale.double()
    assert float((int8_product(x, q, scale).double() - exact).norm() / exact.norm()) < 0.01


@pytest.mark.parametrize("x", [[1e20, 2e20, 0.0, -1e20], [BF16_MAX, 1.0, 0.0, 0.0], [float("inf"), 1, 1, 1]])
def test_a_norm_whose_squares_overflow_is_no_number_instead_of_zero(x):
    values, out = np.array(x, np.float32), np.empty(4, np.float32)
    normalise(values, np.ones(4, np.float32), np.float32(1e-6), out)
    assert np.isnan(out).all()
    assert rms_norm(torch.from_numpy(values)[None], torch.ones(4), 1e-6).isnan().all()


def test_a_norm_of_zeros_is_zero_and_tiny_values_stay_what_they_are():
    for values in (np.zeros(4, np.float32), np.full(4, 1e-42, np.float32)):
        out = np.empty(4, np.float32)
        normalise(values, np.ones(4, np.float32), np.float32(1e-6), out)
        np.testing.assert_allclose(out, values * 1e3, rtol=1e-3)


@pytest.mark.parametrize("gelu", [False, True])
@pytest.mark.parametrize("gate", [-BF16_MAX, -1e5, -100.0, -87.5, -20.0, -0.0, 0.0, 88.5, 1e30, float("nan")])
def test_gates_far_out_are_those_of_float64(gate, gelu):
    y = torch.tensor([gate, 1.0]).bfloat16()
    x, narrow, scratch = np.empty(1, np.float32), np.empty(1, np.int16), np.empty(2, np.float32)
    cpu.gate(y.view(torch.int16).numpy(), NONE, NONE, gelu, scratch, NONE, x, narrow)
    wide = y[:1].double()
    exact = torch.nn.functional.gelu(wide, approximate="tanh") if gelu else torch.nn.functional.silu(wide)
    np.testing.assert_allclose(x, exact.numpy(), rtol=1e-5, atol=1e-30)


@pytest.mark.parametrize("largest", [1e-40, 1e-30, 1.0, 1e14, 1e25, BF16_MAX])
def test_a_residual_of_any_size_has_scales_and_keeps_its_largest_value(largest):
    torch.manual_seed(2)
    weight = torch.randn(3, 40).clamp(-1, 1) * largest
    weight[0, 3] = largest
    residual = quantise_residual(weight)
    assert torch.isfinite(residual.scale).all()
    assert (residual.scale > 0).all()
    error = (dequantise_residual(residual).double() - weight.double()).abs().max()
    # The search clips at most to 0.35 of the range.
    assert float(error) <= 0.66 * largest


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.data())
def test_selection_is_the_reference_s_for_any_values_profile_and_count(data):
    n_in = data.draw(st.sampled_from([1, 5, 40, CHUNK, CHUNK + 3]))
    few = data.draw(st.lists(MAGNITUDES, min_size=1, max_size=6))
    x = torch.tensor(few).repeat(-(-n_in // len(few)))[:n_in]
    x = x[torch.randperm(n_in, generator=torch.Generator().manual_seed(data.draw(st.integers(0, 99))))]
    profile = torch.zeros(n_in)
    for start in range(0, n_in, CHUNK):
        part = profile[start : start + CHUNK]
        values = data.draw(st.lists(MAGNITUDES.map(abs), min_size=2, max_size=2).map(sorted))
        part.copy_(torch.linspace(values[1], values[0], len(part)).clamp(min=0).sort(descending=True).values)
    k_chunk = data.draw(st.sampled_from([0, 1, 3, 8, 513, CHUNK, CHUNK + 1, 1 << 40]))
    stack = CorrectionStack(1, n_in, 3)
    weight = torch.randn(3, n_in)
    stack.add(0, quantise_residual(weight), profile)
    stack.set_k_chunk(k_chunk)
    out = stack.apply(0, x.numpy())
    mask = bucket_mask(x[None], min(k_chunk, CHUNK), profile)[0]
    assert stack.channels == int(mask.sum())
    if not mask.any():
        assert out.size == 0
        return
    assert set(stack._scratch[1][: stack.channels].tolist()) == set(mask.nonzero()[:, 0].tolist())
    assert out.shape == (3,)
