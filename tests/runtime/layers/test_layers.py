"""Every kind of layer against the dense product of what it stands for."""

import pytest
import torch

from kernels.dec.residual import dequantise_residual, quantise_residual
from kernels.dec.rtn import dequantise, quantise_rtn
from runtime.layers.compensated import Compensated
from runtime.layers.correction import Correction
from runtime.layers.dense import Dense
from runtime.layers.int8 import Int8
from runtime.layers.lowbit import LowBit

N_OUT, N_IN = 96, 1152


def relative(a, b):
    return float((a - b).norm() / b.norm())


@pytest.fixture
def weight():
    return torch.randn(N_OUT, N_IN, generator=torch.Generator().manual_seed(4))


@pytest.fixture
def inputs():
    g = torch.Generator().manual_seed(6)
    return torch.randn(33, N_IN, generator=g) * torch.exp(torch.randn(N_IN, generator=g))


def compensated(weight):
    base = quantise_rtn(weight, 3)
    residual = quantise_residual(weight - dequantise(base))
    profile = torch.cat([torch.linspace(9, 0, 1024), torch.linspace(9, 0, 128)])
    layer = Compensated(LowBit(base), Correction.alone(residual, profile))
    return layer, dequantise(base), dequantise_residual(residual)


def test_dense(weight, inputs):
    layer = Dense(weight)
    assert torch.allclose(layer.prefill(inputs), inputs @ weight.t(), rtol=1e-4, atol=1e-3)
    assert layer.bytes_in_memory() == weight.numel() * 4


@pytest.mark.parametrize("scales", [1, N_OUT])
def test_int8_and_its_rows(weight, inputs, scales):
    scale = weight.abs().amax(1) / 127 if scales > 1 else weight.abs().amax()[None] / 127
    q = (weight / scale.expand(N_OUT)[:, None]).round().to(torch.int8)
    layer = Int8(q, scale)
    exact = q.float() * scale.expand(N_OUT)[:, None]
    assert relative(layer.prefill(inputs), inputs @ exact.t()) < 5e-3
    assert relative(layer.decode(inputs[:1]), inputs[:1] @ exact.t()) < 5e-3
    assert torch.equal(layer.rows(torch.tensor([3, 0])), exact[[3, 0]])


def test_int8_with_column_factors(weight, inputs):
    columns = torch.exp(torch.randn(N_IN, generator=torch.Generator().manual_seed(8)))
    step = (weight * columns).abs().max() / 127
    q = (weight * columns / step).round().to(torch.int8)
    layer, exact = Int8(q, step[None], columns), q.float() * step / columns
    assert relative(layer.prefill(inputs), inputs @ exact.t()) < 5e-3
    assert relative(layer.decode(inputs[:1]), inputs[:1] @ exact.t()) < 5e-3
    torch.testing.assert_close(layer.rows(torch.tensor([3, 0])), exact[[3, 0]])


@pytest.mark.parametrize("offset", [1, 8, 16, 33])
def test_int8_codes_may_lie_anywhere_in_a_file(inputs, offset):
    data = torch.randint(-127, 128, (N_OUT * N_IN + 64,)).to(torch.int8)
    q = data[offset : offset + N_OUT * N_IN].view(N_OUT, N_IN)
    layer = Int8(q, torch.ones(1))
    assert relative(layer.decode(inputs[:1]), inputs[:1] @ q.float().t()) < 5e-3


def test_lowbit_is_the_base_alone(weight, inputs):
    base = quantise_rtn(weight, 4)
    layer = LowBit(base)
    assert relative(layer.prefill(inputs), inputs @ dequantise(base).t()) < 5e-3
    assert layer.bytes_in_memory() < weight.numel()


def test_prefill_corrects_every_channel(weight, inputs):
    layer, base, residual = compensated(weight)
    assert relative(layer.prefill(inputs), inputs @ (base + residual).t()) < 1e-2


def test_prefill_leaves_the_prompt_uncorrected_where_that_is_asked_for(weight, inputs):
    layer, base, residual = compensated(weight)
    plain = Compensated(layer.base, layer.correction, prompt_correction=False)
    assert relative(plain.prefill(inputs), inputs @ base.t()) < 5e-3
    plain.correction.stack.set_k_chunk(1024)
    assert relative(plain.decode(inputs[:1]), inputs[:1] @ (base + residual).t()) < 1e-2


def test_decode_corrects_more_channels_the_further_the_slider(weight, inputs):
    layer, base, residual = compensated(weight)
    x, errors = inputs[:1], []
    assert relative(layer.decode(x), x @ base.t()) < 5e-3
    for k_chunk in (0, 8, 64, 256, 1024):
        layer.correction.stack.set_k_chunk(k_chunk)
        errors.append(relative(layer.decode(x), x @ weight.t()))
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.2 * errors[0]
    assert relative(layer.decode(x), x @ (base + residual).t()) < 1e-2


def test_the_last_short_chunk_gets_its_share(weight):
    layer, _, _ = compensated(weight)
    layer.correction.stack.set_k_chunk(64)
    assert layer.correction.stack.channels == 64 + 8


def test_a_token_with_a_value_that_is_not_finite_gets_the_base_alone_and_is_counted(weight, inputs):
    layer, _, _ = compensated(weight)
    stack = layer.correction.stack
    stack.set_k_chunk(64)
    broken = inputs[:1].clone()
    broken[0, 700] = float("inf")
    torch.testing.assert_close(layer.decode(broken), layer.base.decode(broken), equal_nan=True)
    assert stack.not_finite == 1
    assert not torch.equal(layer.decode(inputs[:1]), layer.base.decode(inputs[:1]))
    assert stack.not_finite == 1
