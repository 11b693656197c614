"""Dense products against float64, with every prologue and epilogue."""

import pytest
import torch

from kernels.gpu.dense.product import DenseConfig, dense_gate, dense_product
from kernels.gpu.dense.weights import DenseWeights
from kernels.gpu.product import Epilogue

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
CONFIGS = (None, DenseConfig(rows=4, block=64), DenseConfig(rows=2, block=256))


def sample(rows, columns, seed=0):
    torch.manual_seed(seed)
    matrix = (torch.randn(rows, columns) / columns**0.5).bfloat16().to(DEVICE)
    return DenseWeights(matrix), torch.randn(1, columns, device=DEVICE)


def normed(x, weight, eps):
    return x.double() / (x.double().square().mean() + eps).sqrt() * weight.double()


def close(found, exact):
    return float((found.double() - exact).norm() / exact.norm()) < 1e-6


@pytest.mark.parametrize("config", CONFIGS)
def test_product_with_norm_bias_and_sum(config):
    weights, x = sample(21, 200)
    norm, bias = torch.rand(200, device=DEVICE) + 0.5, torch.randn(21, device=DEVICE)
    stream = torch.randn(1, 21, device=DEVICE)
    exact = stream.double() + bias.double() + normed(x, norm, 0.1) @ weights.matrix.double().T
    found = dense_product(
        weights, x, stream, norm=norm, eps=0.1, epilogue=Epilogue(add=True, bias=bias), config=config
    )
    assert found is stream
    assert close(stream, exact)


def test_plain_product():
    weights, x = sample(9, 72)
    out = torch.full((1, 9), float("nan"), device=DEVICE)
    assert close(dense_product(weights, x, out), x.double() @ weights.matrix.double().T)


@pytest.mark.parametrize("gelu", [False, True])
@pytest.mark.parametrize("config", CONFIGS)
def test_gate(config, gelu):
    weights, x = sample(2 * 11, 136)
    norm, bias = torch.rand(136, device=DEVICE) + 0.5, torch.randn(22, device=DEVICE)
    both = normed(x, norm, 1e-6) @ weights.matrix.double().T + bias.double()
    gate, up = both.chunk(2, -1)
    activated = torch.nn.functional.gelu(gate, approximate="tanh") if gelu else torch.nn.functional.silu(gate)
    out = torch.full((1, 11), float("nan"), device=DEVICE)
    dense_gate(weights, x, out, norm=norm, gelu=gelu, bias=bias, config=config)
    assert close(out, activated * up)


def test_shapes_that_do_not_fit_are_refused():
    weights, x = sample(8, 64)
    with pytest.raises(ValueError, match="do not fit"):
        dense_product(weights, x[:, :32].contiguous(), torch.zeros(1, 8, device=DEVICE))
    with pytest.raises(ValueError, match="8 columns"):
        DenseWeights(torch.zeros(4, 12, dtype=torch.bfloat16))
