"""Torch's low-bit products against dense ones, and the sharpened head."""

import numpy as np
import pytest
import torch

from kernels import cpu
from kernels.cpu.products import PANEL_TOKENS, int4_product, int8_product, pack_int4, residual_product
from kernels.cpu.scale_search import best_scales
from kernels.dec.int4op import int4_op_codes, int4_op_tables
from kernels.dec.rtn import dequantise, quantise_rtn


def relative(a, b):
    return float((a.float() - b.float()).norm() / b.float().norm())


@pytest.mark.parametrize("tokens", [1, 7, PANEL_TOKENS, PANEL_TOKENS + 1, 70])
def test_int8(tokens):
    x = torch.randn(tokens, 576).bfloat16()
    q, scale = torch.randint(-127, 128, (96, 576), dtype=torch.int8), torch.rand(96).bfloat16()
    expected = x.float() @ (q.float() * scale.float()[:, None]).t()
    assert relative(int8_product(x, q, scale), expected) < 5e-3


@pytest.mark.parametrize("bits", [3, 4])
@pytest.mark.parametrize("n_in", [576, 1536, 160])
@pytest.mark.parametrize("tokens", [1, 40])
def test_int4_computes_with_exactly_the_stored_base(bits, n_in, tokens):
    weight = torch.randn(64, n_in)
    base = quantise_rtn(weight, bits)
    x = torch.randn(tokens, n_in).bfloat16()
    group, tables = int4_op_tables(base)
    y = int4_product(x, pack_int4(int4_op_codes(base)), group, tables)
    assert relative(y, x.float() @ dequantise(base).t()) < 5e-3


def test_residual():
    x = torch.randn(9, 40).bfloat16()
    codes, scale = torch.randint(-7, 8, (40, 24), dtype=torch.int8), torch.rand(24)
    assert relative(residual_product(x, codes, scale), x.float() @ codes.float() * scale) < 5e-3


def test_sharpening_recomputes_the_contenders_and_nothing_else():
    torch.manual_seed(2)
    q, scale = torch.randint(-127, 128, (500, 64), dtype=torch.int8), torch.rand(500) * 0.01 + 0.001
    x = torch.randn(64)
    exact = (q.float() @ x) * scale
    rounded = exact.bfloat16().float()
    logits = rounded.clone()
    count = cpu.sharpen(x.numpy(), q.numpy(), scale.numpy(), logits.numpy())
    near = rounded >= rounded.max() - max(rounded.max().abs() / 64, 0.25)
    assert count == int(near.sum())
    assert 0 < count < 250
    assert torch.allclose(logits[near], exact[near], rtol=1e-5)
    assert torch.equal(logits[~near], rounded[~near])
    assert int(logits.argmax()) == int(exact.argmax())


def test_scale_search_finds_the_grid_s_least_error():
    torch.manual_seed(3)
    rows = torch.randn(20, 70) * torch.rand(20, 1)
    largest = rows.abs().amax(1) / 7
    factors = torch.linspace(0.3, 1.0, 17)
    out = torch.empty(20)
    best_scales(rows.numpy(), largest.numpy(), factors.numpy(), np.float32(7), out.numpy())
    candidates = largest[:, None, None] * factors[None, :, None]
    codes = (rows[:, None] / candidates).round().clamp(-7, 7)
    errors = (codes * candidates - rows[:, None]).square().sum(-1)
    assert torch.allclose(out, largest * factors[errors.argmin(1)])
