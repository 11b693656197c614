"""Fetched corrections against float64: every way to fetch, ragged rows, and the sum into an output."""

from __future__ import annotations

import pytest
import torch

from kernels.dec import pack_nibbles
from kernels.gpu.dec.correction import add_correction, fetch_correction, gate_corrected
from kernels.gpu.dec.fetch import FetchConfig, ResidualRows, default_fetch_config, new_fetch
from kernels.gpu.dec.selection import new_selection
from kernels.gpu.prepare import prepare
from tests.kernels.gpu.samples import with_outliers

CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"


def _residual(n_in, n_out):
    generator = torch.Generator().manual_seed(n_in + n_out)
    codes = torch.randint(-7, 8, (n_in, n_out), generator=generator, dtype=torch.int8)
    scale = torch.rand(n_out, generator=generator) + 0.1
    words = pack_nibbles(codes)
    rows = ResidualRows(words.pin_memory() if CUDA else words, scale.to(DEVICE))
    return rows, codes.double() * scale.double()


def _expected(x, selection, dense):
    """From the listed channels alone, which `test_selection` checks."""
    count = selection.listed(int(selection.control[1]))
    channels = selection.channels[:count].long().cpu()
    return x[channels].double() @ dense[channels]


def _corrected(x, residual, config, k_chunk, warps):
    selection = new_selection(x.numel(), DEVICE, k_chunk)
    fetch = new_fetch(residual, selection, config)
    fetch.partial.fill_(torch.nan)
    prepare(x.to(DEVICE), selection=selection)
    fetch_correction(fetch, warps=warps)
    out = add_correction(torch.zeros(1, residual.rows, device=DEVICE), fetch)
    return out.cpu()[0], selection


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize(("rows", "splits"), [(4, 1), (8, 2)])
def test_every_way_to_fetch(rows, splits, ahead):
    residual, dense = _residual(1060, 264)
    x = with_outliers(1, 1060)[0]
    for k_chunk in (1, 12):
        out, selection = _corrected(x, residual, FetchConfig(rows, splits, ahead), k_chunk, warps=1)
        expected = _expected(x, selection, dense)
        assert (out - expected).norm() < 3e-7 * expected.norm()


@pytest.mark.parametrize(
    ("n_in", "n_out", "warps"), [(200, 576, 2), (40, 8, 1), (1300, 101, 2), (64, 256, 1)]
)
def test_odd_shapes(n_in, n_out, warps):
    residual, dense = _residual(n_in, n_out)
    x = with_outliers(1, n_in)[0]
    out, selection = _corrected(x, residual, FetchConfig(4, 2), 64, warps)
    expected = _expected(x, selection, dense)
    assert (out - expected).norm() < 3e-7 * expected.norm()


def test_all_channels_give_the_whole_residual():
    residual, dense = _residual(96, 40)
    x = with_outliers(1, 96)[0]
    out, _ = _corrected(x, residual, FetchConfig(8, 1), 1024, warps=1)
    expected = x.double() @ dense
    assert (out - expected).norm() < 3e-7 * expected.norm()


@pytest.mark.parametrize("value", [0.0, torch.nan])
def test_nothing_is_read_or_added_without_a_selection(value):
    residual, _ = _residual(64, 16)
    residual.words[0] = 0x11111111
    k_chunk = 0 if value == 0 else 5
    selection = new_selection(64, DEVICE, k_chunk)
    fetch = new_fetch(residual, selection, FetchConfig(4, 1))
    fetch.partial.fill_(torch.nan)
    prepare(torch.full((64,), value, device=DEVICE), selection=selection)
    fetch_correction(fetch)
    out = add_correction(torch.ones(1, 16, device=DEVICE), fetch)
    assert fetch.partial.isnan().all()
    assert (out == 1).all()


def test_the_common_factor_and_bf16_outputs():
    residual, dense = _residual(200, 72)
    x, weight = with_outliers(1, 200)[0], torch.rand(200) + 0.5
    selection = new_selection(200, DEVICE, 64)
    fetch = new_fetch(residual, selection, FetchConfig(4, 2))
    prepare(x.to(DEVICE), norm=weight.to(DEVICE), eps=1e-6, selection=selection)
    fetch_correction(fetch)
    start = torch.randn(1, 80, generator=torch.Generator().manual_seed(0)).bfloat16().to(DEVICE)
    out = add_correction(start.clone(), fetch).cpu()
    normed = x.double() / (x.double().square().mean() + 1e-6).sqrt() * weight
    expected = start.cpu()[0, :72].double() + _expected(normed, selection, dense)
    torch.testing.assert_close(out[0, :72].double(), expected, rtol=2**-8, atol=1e-4)
    torch.testing.assert_close(out[0, 72:], start.cpu()[0, 72:], rtol=0, atol=0)


@pytest.mark.parametrize("k_chunk", [0, 64])
def test_a_sum_and_a_gate_take_the_correction_along(k_chunk):
    residual, dense = _residual(200, 600)
    x = with_outliers(1, 200)[0]
    selection = new_selection(200, DEVICE, k_chunk)
    fetch = new_fetch(residual, selection, FetchConfig(4, 3))
    fetch.partial.fill_(torch.nan)
    prepare(x.to(DEVICE), selection=selection)
    fetch_correction(fetch)
    generator = torch.Generator().manual_seed(9)
    out = torch.randn(1, 600, generator=generator).to(DEVICE)
    corrected = out.cpu().double() + (_expected(x, selection, dense) if k_chunk else 0.0)
    gated = gate_corrected(out, fetch, torch.empty(1, 300, device=DEVICE)).cpu()
    gate = corrected[:, :300]
    exact = gate * gate.sigmoid() * corrected[:, 300:]
    assert (gated - exact).norm() < 1e-6 * exact.norm()
    added = add_correction(out, fetch).cpu()
    torch.testing.assert_close(added.double(), corrected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("n_out", [576, 4096, 28672])
@pytest.mark.parametrize("link_gb_s", [13.0, 50.0])
def test_the_default_keeps_the_link_just_busy(n_out, link_gb_s):
    rows = ResidualRows(torch.zeros(1, n_out // 8, dtype=torch.int32), torch.ones(n_out))
    config = default_fetch_config(rows, link_gb_s)
    flying = config.rows * config.splits * rows.segment_groups(1) * 128
    latency_us = flying / (link_gb_s * 1e3)
    assert 0.5 < latency_us < 3


def test_what_does_not_fit_is_refused():
    residual, _ = _residual(64, 16)
    with pytest.raises(ValueError, match="do not hold"):
        ResidualRows(residual.words, torch.ones(17))
    with pytest.raises(ValueError, match="among 64 rows"):
        new_fetch(residual, new_selection(65, DEVICE))
    with pytest.raises(ValueError, match="no way to fetch"):
        FetchConfig(17, 1)
    with pytest.raises(ValueError, match="padded list"):
        FetchConfig(16, 64)
    with pytest.raises(ValueError, match="does not fit"):
        add_correction(torch.zeros(2, 16), new_fetch(residual, new_selection(64, DEVICE)))
    fetch = new_fetch(residual, new_selection(64, DEVICE))
    with pytest.raises(ValueError, match="7 gated"):
        gate_corrected(torch.zeros(1, 16), fetch, torch.zeros(1, 7))
