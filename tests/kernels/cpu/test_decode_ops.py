"""Each compiled decode operation against plain torch."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from kernels import cpu
from kernels.cpu.scalars import exp32, to_bf16
from kernels.jit import njit

NONE = np.empty(0, np.float32)


def bits(tensor):
    return tensor.bfloat16().view(torch.int16).numpy()


def of_bits(array):
    return torch.from_numpy(array).view(torch.bfloat16).float()


@njit
def _roundtrip(values, out):
    for i in range(values.size):
        out[i] = to_bf16(values[i])


@njit
def _exp(values, out):
    for i in range(values.size):
        out[i] = exp32(values[i])


def test_bfloat16_rounds_as_torch():
    values = torch.randn(4096) * torch.logspace(-38, 38, 4096)
    special = torch.tensor([0.0, -0.0, torch.inf, -torch.inf, torch.nan, 1.00390625, 1.01171875, 3e-39])
    values = torch.cat([values, special])
    out = np.empty(len(values), np.int16)
    _roundtrip(values.numpy(), out)
    assert torch.equal(of_bits(out).nan_to_num(7.0), values.bfloat16().float().nan_to_num(7.0))


def test_exponential_is_close_to_numpy():
    values = np.linspace(-86, 88, 100_001).astype(np.float32)
    out = np.empty_like(values)
    _exp(values, out)
    exact = np.exp(values.astype(np.float64))
    assert np.max(np.abs(out - exact) / exact) < 3e-7


@pytest.mark.parametrize("n", [576, 97, 1])
def test_norm_and_residual(n):
    h, y, corr, bias = (torch.randn(n) for _ in range(4))
    weight, post = torch.rand(n) + 0.5, torch.rand(n) + 0.5
    state, x, x16 = h.numpy().copy(), np.empty(n, np.float32), np.empty(n, np.int16)
    scratch = np.empty(n, np.float32)
    cpu.finish_block(state, bits(y), corr.numpy(), bias.numpy(), post.numpy(), np.float32(1e-5), scratch)
    expected = h + F.rms_norm(y.bfloat16().float() + corr + bias, (n,), post, 1e-5)
    assert torch.allclose(torch.from_numpy(state), expected, atol=1e-5)
    cpu.start_linear(state, weight.numpy(), np.float32(1e-5), NONE, x, x16)
    normed = F.rms_norm(expected, (n,), weight, 1e-5)
    assert torch.allclose(torch.from_numpy(x), normed, atol=1e-5)
    assert torch.equal(of_bits(x16), torch.from_numpy(x).bfloat16().float())


def test_column_factors_are_applied_to_both_forms_of_an_input():
    n = 77
    state, weight, inverse = torch.randn(n), torch.rand(n), torch.rand(n) + 0.1
    x, x16 = np.empty(n, np.float32), np.empty(n, np.int16)
    cpu.start_linear(state.numpy(), weight.numpy(), np.float32(1e-5), inverse.numpy(), x, x16)
    assert torch.allclose(torch.from_numpy(x), F.rms_norm(state, (n,), weight, 1e-5) * inverse, atol=1e-5)
    assert torch.equal(of_bits(x16), torch.from_numpy(x).bfloat16().float())


@pytest.mark.parametrize("factors", [False, True])
@pytest.mark.parametrize("gelu", [False, True])
def test_gate(gelu, factors):
    n = 131
    inverse = torch.rand(n) + 0.5 if factors else torch.ones(n)
    y, corr = torch.randn(2 * n) * 6, torch.randn(2 * n)
    x, x16, scratch = np.empty(n, np.float32), np.empty(n, np.int16), np.empty(2 * n, np.float32)
    cpu.gate(bits(y), corr.numpy(), NONE, gelu, scratch, inverse.numpy() if factors else NONE, x, x16)
    g, up = (y.bfloat16().float() + corr).chunk(2)
    act = F.gelu(g, approximate="tanh") if gelu else F.silu(g)
    assert torch.allclose(torch.from_numpy(x), act * up * inverse, atol=2e-5, rtol=1e-5)


@pytest.mark.parametrize("factors", [False, True])
@pytest.mark.parametrize("window", [None, 6])
def test_attention_over_a_cache(window, factors):
    heads, kv_heads, dim, position, context = 6, 2, 16, 21, 32
    torch.manual_seed(3)
    keys, values = torch.randn(kv_heads, context, dim), torch.randn(kv_heads, context, dim)
    y, bias = torch.randn((heads + 2 * kv_heads) * dim), torch.randn((heads + 2 * kv_heads) * dim)
    q_norm, k_norm = torch.rand(dim) + 0.5, torch.rand(dim) + 0.5
    angle = torch.outer(torch.arange(context).float(), torch.rand(dim // 2))
    first = 0 if window is None else position - window + 1
    inverse = torch.rand(heads * dim) + 0.5 if factors else torch.ones(heads * dim)
    x, x16 = np.empty(heads * dim, np.float32), np.empty(heads * dim, np.int16)
    k_cache, v_cache = keys.transpose(1, 2).contiguous().numpy(), values.numpy().copy()
    cpu.attend(
        bits(y), NONE, bias.numpy(), q_norm.numpy(), k_norm.numpy(), np.float32(1e-6),
        angle.cos().numpy(), angle.sin().numpy(), k_cache, v_cache, position, first, np.float32(0.3),
        np.empty(len(y), np.float32), np.empty(context, np.float32),
        inverse.numpy() if factors else NONE, x, x16,
    )  # fmt: skip
    q, k, v = (y.bfloat16().float() + bias).view(-1, dim).split([heads, kv_heads, kv_heads])
    q, k = F.rms_norm(q, (dim,), q_norm, 1e-6), F.rms_norm(k, (dim,), k_norm, 1e-6)
    cos, sin = angle.cos()[position].repeat(2), angle.sin()[position].repeat(2)
    half = dim // 2
    q, k = (t * cos + torch.cat([-t[:, half:], t[:, :half]], 1) * sin for t in (q, k))
    keys[:, position], values[:, position] = k, v
    seen = slice(first, position + 1)
    expected = F.scaled_dot_product_attention(
        q[:, None], keys[:, seen].repeat_interleave(3, 0), values[:, seen].repeat_interleave(3, 0), scale=0.3
    )
    assert torch.allclose(torch.from_numpy(x), expected.flatten() * inverse, atol=1e-5)
    assert np.allclose(k_cache, keys.transpose(1, 2).numpy(), atol=1e-5)
    assert np.array_equal(v_cache, values.numpy())
