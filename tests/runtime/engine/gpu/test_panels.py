"""Panels of packed weights: how they are cut, and that their products add up."""

import pytest
import torch

from kernels.dec import dequantise, dequantise_residual, pack_nibbles, quantise_residual, quantise_rtn
from kernels.gpu.dec.fetch import ResidualRows
from kernels.gpu.dense.weights import DenseWeights
from kernels.gpu.fields import Form
from kernels.gpu.lowbit.groups import pack_groups
from kernels.gpu.packing import pack_planes
from kernels.gpu.panel import even_parts
from runtime.engine.gpu.model import LinearParts
from runtime.engine.gpu.panels import PANEL_BYTES, Panels, add_product, panel_buffer_bytes, panels_of
from runtime.engine.gpu.residual_stream import ResidualStream, channel_slices

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
# Planes have fewer rows: they take long in the interpreter.
SHAPES = {"groups": (136, 400), "dense": (136, 400), "planes": (16, 300)}


def test_parts_are_even_and_begin_at_steps():
    assert even_parts((0, 4096), 1170) == [(0, 1024), (1024, 2048), (2048, 3072), (3072, 4096)]
    assert even_parts((0, 600), 300) == [(0, 256), (256, 512), (512, 600)]
    assert even_parts((512, 600), 10) == [(512, 600)]
    assert even_parts((0, 300), 1) == [(0, 128), (128, 256), (256, 300)]
    assert even_parts((1024, 1500), 1 << 20) == [(1024, 1500)]


@pytest.mark.parametrize("shape", [(28672, 4096), (4096, 14336), (6144, 4096), (57344, 8192), (96, 48)])
@pytest.mark.parametrize("whole_rows", [True, False])
def test_panels_cover_the_weights_once_within_the_buffer(shape, whole_rows):
    rows, columns = shape
    covered = torch.zeros(rows, -(-columns // 16), dtype=torch.uint8)
    for panel in panels_of(rows, (0, columns), PANEL_BYTES // 2, whole_rows=whole_rows):
        assert panel.shape[0] * panel.shape[1] * 2 <= panel_buffer_bytes(rows)
        assert panel.rows[0] % 128 == 0
        assert panel.columns[0] % 128 == 0
        assert not whole_rows or panel.rows == (0, rows)
        assert panel.shape[0] >= min(rows, 2048)
        covered[slice(*panel.rows), panel.columns[0] // 16 : -(-panel.columns[1] // 16)] += 1
    assert (covered == 1).all()


def sample(kind):
    """A linear and the weights that it stands for, with the residual and without, float64."""
    torch.manual_seed(3)
    n_out, n_in = SHAPES[kind]
    weight = torch.randn(n_out, n_in) / n_in**0.5
    if kind == "groups":
        base = quantise_rtn(weight, 3)
        made, exact = pack_groups(base), dequantise(base)
    elif kind == "dense":
        made = DenseWeights(weight.bfloat16().to(DEVICE))
        exact = (weight * 0.9).bfloat16().float()
        made.matrix.copy_(exact)
    else:
        q = (weight * 60).round().clamp(-8, 7).to(torch.int8)
        made, exact = pack_planes(q, torch.full((1,), 1 / 60), forms=(Form(4),)), q.float() / 60
    residual = quantise_residual(weight - exact)
    rows = ResidualRows(pack_nibbles(residual.codes), residual.scale.to(DEVICE))
    corrected = exact.double() + dequantise_residual(residual).double()
    weights = made if kind == "dense" else made.to(DEVICE)
    return LinearParts(weights, residual=rows), exact.double(), corrected


def product(panels, linear, x, slice_bytes=None):
    out = torch.full((len(x), linear.weights.rows), torch.nan, device=DEVICE)
    if slice_bytes is None:
        return panels.multiply(x, linear, out)
    slices = channel_slices(linear.residual, slice_bytes)
    return panels.multiply_corrected(x, linear, slices, ResidualStream(DEVICE, 60_000).through(slices), out)


@pytest.mark.parametrize("kind", ["groups", "planes", "dense"])
@pytest.mark.parametrize(("panel_bytes", "slice_bytes"), [(1 << 20, 1 << 20), (35_000, 20_000)])
def test_products_are_those_of_base_and_residual(kind, panel_bytes, slice_bytes):
    linear, base, corrected = sample(kind)
    panels = Panels(DEVICE, linear.weights.rows, panel_bytes, fewest_rows=128)
    x = torch.randn(5, linear.weights.columns).bfloat16()
    found = product(panels, linear, x.to(DEVICE), slice_bytes).double().cpu()
    exact = x.double() @ corrected.t()
    assert (found - exact).norm() < 4e-3 * exact.norm()
    found = product(panels, linear, x.to(DEVICE)).double().cpu()
    plain = x.double() @ base.t()
    assert (found - plain).norm() < 4e-3 * plain.norm()
    assert (exact - plain).norm() > 2e-2 * exact.norm()


def test_dense_weights_are_multiplied_where_they_are():
    linear, base, _ = sample("dense")
    panels = Panels(DEVICE, linear.weights.rows, 40_000)
    panels._buffer.fill_(torch.nan)
    x = torch.randn(3, linear.weights.columns).bfloat16()
    found = product(panels, linear, x.to(DEVICE)).double().cpu()
    assert (found - x.double() @ base.t()).abs().max() < 1e-5


def test_sums_are_float32_in_parts_of_a_larger_tensor():
    out = torch.full((3, 40), 7.0, device=DEVICE)
    x, matrix = torch.randn(3, 64).bfloat16(), torch.randn(24, 64).bfloat16()
    exact = x.double() @ matrix.double().t()
    for turn, begin in enumerate((True, False, False), 1):
        add_product(out[:, 8:32], x.to(DEVICE), matrix.to(DEVICE), begin=begin)
        assert (out[:, 8:32].double().cpu() - turn * exact).abs().max() < 1e-4
    assert (out[:, :8] == 7).all()
    assert (out[:, 32:] == 7).all()
