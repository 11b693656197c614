"""Residual rows added to a panel of decoded weights, against float64."""

from __future__ import annotations

import pytest
import torch

from kernels.dec import pack_nibbles
from kernels.gpu.dec.residual_decode import add_residual

CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"
TWINS = [True, False] if CUDA else [False]


def _sample(n_out, n_in):
    generator = torch.Generator().manual_seed(n_out + n_in)
    codes = torch.randint(-7, 8, (n_in, n_out), generator=generator, dtype=torch.int8)
    scale = torch.rand(n_out, generator=generator) + 0.1
    panel = torch.randn(n_out, n_in, generator=generator).bfloat16()
    return panel, codes, scale


def _exact(panel, codes, scale):
    return panel.double() + (codes.double() * scale.double()).t()


def _same(found, exact):
    """A product rounded before it is added, and one that is not, may end in two neighbours of bf16."""
    off = (found.double().cpu() - exact).abs()
    assert (off <= exact.abs() * 2**-8 * 1.0001 + 1e-6).all()
    assert (found.cpu() == exact.float().bfloat16()).float().mean() > 0.999


@pytest.mark.parametrize("asm", TWINS)
@pytest.mark.parametrize(("n_out", "n_in"), [(1, 1), (80, 48), (13, 100), (72, 136)])
def test_every_channel_of_every_output_is_added(n_out, n_in, asm):
    panel, codes, scale = _sample(n_out, n_in)
    words = pack_nibbles(codes).to(DEVICE)
    buffer = panel.clone().to(DEVICE)
    assert add_residual(buffer, words, scale.to(DEVICE), asm=asm) is buffer
    _same(buffer, _exact(panel, codes, scale))


@pytest.mark.parametrize(
    ("rows", "channels"), [((0, 24), (0, 32)), ((16, 100), (32, 96)), ((96, 100), (8, 9))]
)
def test_a_panel_takes_its_own_rows_and_channels(rows, channels):
    panel, codes, scale = _sample(100, 96)
    part = panel[slice(*rows), slice(*channels)].contiguous().to(DEVICE)
    words = pack_nibbles(codes).to(DEVICE)[slice(*channels)]
    add_residual(part, words, scale.to(DEVICE), rows[0])
    _same(part, _exact(panel, codes, scale)[slice(*rows), slice(*channels)])


def test_nothing_beside_the_panel_is_touched():
    panel, codes, scale = _sample(24, 40)
    memory = torch.zeros(26, 64, dtype=torch.bfloat16, device=DEVICE)
    view = memory[1:25, 8:48]
    view.copy_(panel)
    add_residual(view, pack_nibbles(codes).to(DEVICE), scale.to(DEVICE))
    _same(view, _exact(panel, codes, scale))
    view.zero_()
    assert not memory.any()


def test_a_sum_is_rounded_to_even():
    panel = torch.tensor([[1.0, 1.0, -1.0]], dtype=torch.bfloat16, device=DEVICE)
    codes = torch.tensor([[1], [3], [1]], dtype=torch.int8)
    add_residual(panel, pack_nibbles(codes).to(DEVICE), torch.tensor([2.0**-8], device=DEVICE))
    assert panel.flatten().tolist() == [1.0, 1 + 2.0**-6, -1 + 2.0**-8]


def test_what_does_not_fit_is_refused():
    panel, codes, scale = _sample(16, 24)
    words = pack_nibbles(codes)
    with pytest.raises(ValueError, match="do not fit"):
        add_residual(panel, words[:23], scale)
    with pytest.raises(ValueError, match="no words"):
        add_residual(panel[:8], words, scale, 4)
    with pytest.raises(ValueError, match="no words"):
        add_residual(panel[:8], words, scale, 16)
    with pytest.raises(ValueError, match="bf16"):
        add_residual(panel.float(), words, scale)


@pytest.mark.skipif(not CUDA, reason="needs a GPU")
@pytest.mark.parametrize(("n_out", "n_in"), [(6144, 1024), (4096, 3584), (1001, 576)])
def test_model_shapes(n_out, n_in):
    panel, codes, scale = _sample(n_out, n_in)
    buffer = panel.to(DEVICE)
    add_residual(buffer, pack_nibbles(codes).to(DEVICE), scale.to(DEVICE))
    _same(buffer, _exact(panel, codes, scale))
