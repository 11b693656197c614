"""Decoded group codes are the bits of the dequantised base, whole and in panels."""

from __future__ import annotations

import pytest
import torch

from kernels.dec import GroupCodes, dequantise
from kernels.gpu.lowbit.group_decode import decode_groups_bf16
from kernels.gpu.lowbit.groups import pack_groups

CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"
TWINS = [True, False] if CUDA else [False]


def _base(rows, columns, bits):
    """Codes, scales and zeros without any relation to one another."""
    generator = torch.Generator().manual_seed(rows * columns + bits)
    tables = (rows, -(-columns // 128))
    codes = torch.randint(0, 1 << bits, (rows, columns), generator=generator, dtype=torch.uint8)
    scale = (torch.rand(tables, generator=generator) + 0.2).bfloat16().float()
    return GroupCodes(bits, 128, codes, scale, torch.randn(tables, generator=generator).bfloat16().float())


@pytest.mark.parametrize("asm", TWINS)
@pytest.mark.parametrize("bits", [3, 4])
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (9, 100), (24, 520), (8, 1160)])
def test_every_bit_is_that_of_the_base(rows, columns, bits, asm):
    base = _base(rows, columns, bits)
    decoded = decode_groups_bf16(pack_groups(base).to(DEVICE), asm=asm)
    assert torch.equal(decoded.cpu(), dequantise(base).bfloat16())


@pytest.mark.parametrize("bits", [3, 4])
@pytest.mark.parametrize("columns", [(0, 512), (128, 640), (512, 1000), (37, 38), (904, 1000)])
@pytest.mark.parametrize("rows", [(0, 20), (8, 16), (3, 13)])
def test_panels(rows, columns, bits):
    base = _base(20, 1000, bits)
    panel = decode_groups_bf16(pack_groups(base).to(DEVICE), rows, columns)
    assert torch.equal(panel.cpu(), dequantise(base)[slice(*rows), slice(*columns)].bfloat16())


def test_a_buffer_that_is_not_aligned_is_filled_and_nothing_beside_it():
    base = _base(8, 256, 4)
    memory = torch.full((8 * 256 + 2,), 7.0, dtype=torch.bfloat16, device=DEVICE)
    buffer = memory[1:-1].view(8, 256)
    assert decode_groups_bf16(pack_groups(base).to(DEVICE), out=buffer) is buffer
    assert torch.equal(buffer.cpu(), dequantise(base).bfloat16())
    assert memory[0] == memory[-1] == 7


def test_what_does_not_fit_is_refused():
    weights = pack_groups(_base(8, 130, 4)).to(DEVICE)
    with pytest.raises(ValueError, match="not inside"):
        decode_groups_bf16(weights, (0, 9))
    with pytest.raises(ValueError, match="buffer of 8 x 2"):
        decode_groups_bf16(weights, None, (128, 130), out=torch.zeros(8, 2, device=DEVICE))


@pytest.mark.skipif(not CUDA, reason="needs a GPU")
@pytest.mark.parametrize("bits", [3, 4])
@pytest.mark.parametrize(("rows", "columns"), [(6144, 4096), (4096, 14336), (960, 576), (1001, 1536)])
def test_model_shapes(rows, columns, bits):
    base = _base(rows, columns, bits)
    weights = pack_groups(base).to(DEVICE)
    exact = dequantise(base).bfloat16()
    assert torch.equal(decode_groups_bf16(weights).cpu(), exact)
    first = min(512, columns // 2)
    panel = decode_groups_bf16(weights, (8, 808), (first, columns - 128))
    assert torch.equal(panel.cpu(), exact[8:808, first:-128])
