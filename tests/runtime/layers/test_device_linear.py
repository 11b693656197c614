"""A GPU's linear against float64, with every kind of base; in triton's interpreter where there is no GPU."""

from functools import partial

import pytest
import torch
from torch.nn.functional import gelu as torch_gelu
from torch.nn.functional import silu

from kernels.dec import dequantise, quantise_residual, quantise_rtn
from kernels.dec.residual import pack_nibbles
from kernels.gpu.dec import reference
from kernels.gpu.dec.fetch import FetchConfig, ResidualRows
from kernels.gpu.dense.weights import DenseWeights
from kernels.gpu.lowbit.groups import pack_groups
from kernels.gpu.packing import pack_planes
from kernels.gpu.product import ProductConfig
from runtime.layers.device_linear import DeviceLinear, Prologue, new_buffers
from runtime.layers.device_products import product_warps

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
# A step and a chunk that are not full; the interpreter is slow.
N_OUT, N_IN = 24, 320

gelu_tanh = partial(torch_gelu, approximate="tanh")
ONE_WARP = ProductConfig(1, 64)


def sample(bits, columns=None, seed=0):
    """Weights, their base and residual in the scaled domain, and the linear made of them."""
    torch.manual_seed(seed)
    weight = torch.randn(N_OUT, N_IN) / N_IN**0.5
    scaled = weight if columns is None else weight * columns
    base = quantise_rtn(scaled, bits)
    residual = quantise_residual(scaled - dequantise(base))
    rows = ResidualRows(pack_nibbles(residual.codes), residual.scale.to(DEVICE))
    if DEVICE.type == "cuda":
        rows = ResidualRows(rows.words.pin_memory(), rows.scale)
    buffers = new_buffers(N_IN, N_OUT, DEVICE)
    linear = DeviceLinear(
        pack_groups(base).to(DEVICE),
        buffers,
        inverse_columns=None if columns is None else columns.reciprocal().to(DEVICE),
        residual=rows,
        fetching=FetchConfig(4, 2),
        config=ONE_WARP,
    )
    return linear, dequantise(base).double(), rows


def corrected(base, rows, x, k_chunk):
    """base @ x and the residual of the channels that the kernels list, float64."""
    channels = reference.select_channels(x.float(), k_chunk)
    lost = reference.correction(rows.words.cpu(), rows.scale.cpu(), channels, x[channels])
    return base @ x.double() + lost


def relative(found, exact):
    return float((found.double().cpu().flatten() - exact).norm() / exact.norm())


@pytest.mark.parametrize(("bits", "k_chunk"), [(4, 0), (3, 16), (4, 200)])
def test_decode_is_base_and_correction(bits, k_chunk):
    linear, base, rows = sample(bits)
    x = torch.randn(N_IN)
    linear.buffers.set_k_chunk(k_chunk)
    found = linear.decode(x.to(DEVICE))
    exact = corrected(base, rows, x, k_chunk)
    assert tuple(found.shape) == (1, N_OUT)
    assert relative(found, exact) < 3e-6
    if k_chunk:
        assert relative(found, base @ x.double()) > 1e-4


def test_inputs_are_divided_by_the_columns_before_channels_are_chosen():
    columns = torch.rand(N_IN) * 3 + 0.2
    linear, base, rows = sample(4, columns)
    linear.buffers.set_k_chunk(16)
    x = torch.randn(N_IN)
    found = linear.decode(x.to(DEVICE))
    inverse = columns.reciprocal()
    assert relative(found, corrected(base, rows, x * inverse, 16)) < 3e-6


@pytest.mark.parametrize("kind", ["norm", "gate"])
def test_prologues_come_first(kind):
    linear, base, rows = sample(4)
    linear.buffers.set_k_chunk(8)
    x, other = torch.randn(N_IN), torch.randn(N_IN)
    if kind == "norm":
        prologue, given = Prologue(norm=other.to(DEVICE), eps=1e-5), None
        given = x * other / (x.square().mean() + 1e-5).sqrt()
    else:
        prologue, given = Prologue(up=other.to(DEVICE)), torch.nn.functional.silu(x) * other
    found = linear.decode(x.to(DEVICE), prologue)
    assert relative(found, corrected(base, rows, given, 8)) < 5e-6


def test_what_is_not_corrected_is_the_base_alone():
    linear, base, _ = sample(4)
    linear.buffers.set_k_chunk(64)
    x = torch.randn(N_IN)
    assert relative(linear.decode(x.to(DEVICE), corrected=False), base @ x.double()) < 1e-6


def test_multiply_leaves_the_sum_to_the_reader():
    linear, base, rows = sample(4)
    linear.buffers.set_k_chunk(8)
    x = torch.randn(N_IN)
    found = linear.multiply(x.to(DEVICE)).clone()
    assert relative(found, base @ x.double()) < 1e-6
    lost = linear.fetch.partial.sum(0)[:N_OUT].double().cpu() * rows.scale.double().cpu()
    exact = corrected(base, rows, x, 8) - base @ x.double()
    assert relative(lost, exact) < 1e-5


def test_few_tokens_are_multiplied_without_correction():
    linear, base, _ = sample(3)
    linear.buffers.set_k_chunk(64)
    x = torch.randn(2, N_IN)
    found = linear.few(x.to(DEVICE))
    assert tuple(found.shape) == (2, N_OUT)
    assert relative(found, (x.double() @ base.T).flatten()) < 1e-6
    with pytest.raises(ValueError, match="1 to 8"):
        linear.few(torch.randn(9, N_IN, device=DEVICE))


def test_the_table_holds_for_every_linear_that_shares_the_buffers():
    linear, base, rows = sample(4)
    second = DeviceLinear(
        linear.weights, linear.buffers, residual=linear.fetch.residual, fetching=FetchConfig(4, 1)
    )
    linear.buffers.set_k_chunk(32)
    x = torch.randn(N_IN)
    for one in (linear, second):
        assert relative(one.decode(x.to(DEVICE)), corrected(base, rows, x, 32)) < 3e-6


def test_an_input_that_is_not_finite_is_not_corrected():
    linear, _, _ = sample(4)
    linear.buffers.set_k_chunk(8)
    x = torch.randn(N_IN)
    x[7] = torch.inf
    linear.decode(x.to(DEVICE))
    assert linear.buffers.selection.refused() == 1


def test_int8x_planes_are_multiplied_too():
    torch.manual_seed(1)
    q = (torch.randn(N_OUT, N_IN) * 4).round().to(torch.int8)
    weights = pack_planes(q.to(DEVICE), torch.full((1,), 0.01, device=DEVICE))
    linear = DeviceLinear(weights, new_buffers(N_IN, N_OUT, DEVICE))
    x = torch.randn(N_IN)
    assert relative(linear.decode(x.to(DEVICE)), 0.01 * q.double() @ x.double()) < 1e-6
    assert linear.bytes_in_memory() == weights.nbytes
    assert product_warps(weights) >= 1


def test_results_go_into_the_residual_stream_with_their_corrections():
    linear, base, rows = sample(4)
    linear.buffers.set_k_chunk(16)
    x, stream = torch.randn(N_IN), torch.randn(1, N_OUT)
    found = linear.add_to(stream.clone().to(DEVICE), x.to(DEVICE))
    assert relative(found, stream[0].double() + corrected(base, rows, x, 16)) < 3e-6
    plain = linear.add_to(stream.clone().to(DEVICE), x.to(DEVICE), corrected=False)
    assert relative(plain, stream[0].double() + base @ x.double()) < 3e-6


def test_a_gate_takes_both_halves_with_their_corrections():
    linear, base, rows = sample(4)
    linear.buffers.set_k_chunk(16)
    x = torch.randn(N_IN)
    gate, up = corrected(base, rows, x, 16).chunk(2)
    for gelu, exact in ((False, silu(gate) * up), (True, gelu_tanh(gate) * up)):
        gated = torch.empty(1, N_OUT // 2, device=DEVICE)
        found, then = linear.gate(x.to(DEVICE), gated, Prologue(gelu=gelu))
        assert then == Prologue()
        assert relative(found, exact) < 1e-5


def test_without_correction_the_gate_is_left_to_the_next_linear():
    linear, base, _ = sample(4)
    x = torch.randn(N_IN)
    found, then = linear.gate(x.to(DEVICE), torch.empty(1, N_OUT // 2, device=DEVICE), corrected=False)
    assert relative(found, (base @ x.double())[: N_OUT // 2]) < 1e-6
    assert relative(then.up, (base @ x.double())[N_OUT // 2 :]) < 1e-6


def test_a_bias_is_added_wherever_the_product_goes():
    torch.manual_seed(2)
    base = quantise_rtn(torch.randn(N_OUT, N_IN) / N_IN**0.5, 4)
    bias, x = torch.randn(N_OUT), torch.randn(N_IN)
    linear = DeviceLinear(
        pack_groups(base).to(DEVICE), new_buffers(N_IN, N_OUT, DEVICE), bias=bias.to(DEVICE)
    )
    exact = dequantise(base).double() @ x.double() + bias.double()
    assert relative(linear.decode(x.to(DEVICE)), exact) < 1e-6
    stream = torch.ones(1, N_OUT, device=DEVICE)
    assert relative(linear.add_to(stream, x.to(DEVICE)), exact + 1) < 1e-6
    assert relative(linear.few(x.to(DEVICE)[None]), exact) < 1e-6


@pytest.mark.parametrize("gelu", [False, True])
def test_dense_weights_take_the_same_calls(gelu):
    torch.manual_seed(3)
    matrix = (torch.randn(N_OUT, N_IN) / N_IN**0.5).bfloat16()
    bias, norm, x = torch.randn(N_OUT), torch.rand(N_IN) + 0.5, torch.randn(1, N_IN)
    linear = DeviceLinear(
        DenseWeights(matrix.to(DEVICE)), new_buffers(N_IN, N_OUT, DEVICE), bias=bias.to(DEVICE)
    )
    normed = x.double() / (x.double().square().mean() + 1e-6).sqrt() * norm.double()
    exact = (normed @ matrix.double().T + bias.double())[0]
    x, prologue = x.to(DEVICE), Prologue(norm=norm.to(DEVICE), gelu=gelu)
    assert relative(linear.multiply(x, prologue), exact) < 1e-6
    assert relative(linear.add_to(torch.ones(1, N_OUT, device=DEVICE), x, prologue), exact + 1) < 1e-6
    gate, up = exact.chunk(2)
    found, then = linear.gate(x, torch.empty(1, N_OUT // 2, device=DEVICE), prologue)
    assert then == Prologue()
    assert relative(found, (gelu_tanh(gate) if gelu else silu(gate)) * up) < 1e-6
