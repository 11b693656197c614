"""Decoded look-up tables are the bits of the base, whole and in panels."""

from __future__ import annotations

import pytest
import torch

from kernels.dec import TableCodes, dequantise_table
from kernels.dec.table_steps import in_whole_steps
from kernels.gpu.lowbit.table_decode import decode_tables_bf16
from kernels.gpu.lowbit.table_reference import table_weights
from kernels.gpu.lowbit.tables import pack_tables

CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"
TWINS = [True, False] if CUDA else [False]


def _base(bits, rows, columns, *, shift=0.0, whole=True):
    generator = torch.Generator().manual_seed(rows + columns)
    table = torch.randn(rows, 2**bits, generator=generator) * torch.rand(rows, 1, generator=generator) + shift
    codes = torch.randint(0, 2**bits, (rows, columns), generator=generator, dtype=torch.uint8)
    table = table.bfloat16().float()
    return TableCodes(bits, codes, in_whole_steps(table) if whole else table)


@pytest.mark.parametrize("asm", TWINS)
@pytest.mark.parametrize("bits", [3, 4])
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (9, 100), (16, 520), (8, 1160)])
def test_every_bit_is_that_of_the_base(rows, columns, bits, asm):
    base = _base(bits, rows, columns)
    decoded = decode_tables_bf16(pack_tables(base).to(DEVICE), asm=asm)
    assert torch.equal(decoded.cpu(), dequantise_table(base).bfloat16())


@pytest.mark.parametrize("bits", [3, 4])
@pytest.mark.parametrize("shift", [5.0, -5.0, 0.4])
def test_tables_on_one_side_of_zero(bits, shift):
    base = _base(bits, 8, 160, shift=shift)
    decoded = decode_tables_bf16(pack_tables(base).to(DEVICE))
    assert torch.equal(decoded.cpu(), dequantise_table(base).bfloat16())


@pytest.mark.parametrize("bits", [3, 4])
def test_extreme_tables(bits):
    rows = torch.zeros(4, 2**bits)
    rows[1] = 7.0
    rows[2, 0], rows[2, 1], rows[2, -1] = 1e4, -1e4, 0.25
    rows[3] = -(2.0 ** torch.arange(2**bits))
    codes = torch.arange(2**bits, dtype=torch.uint8).repeat(4, 6)
    base = TableCodes(bits, codes, in_whole_steps(rows))
    assert torch.equal(
        decode_tables_bf16(pack_tables(base).to(DEVICE)).cpu(), dequantise_table(base).bfloat16()
    )


@pytest.mark.parametrize("bits", [3, 4])
def test_other_tables_are_rounded_from_their_whole_steps(bits):
    packed = pack_tables(_base(bits, 16, 160, whole=False))
    assert torch.equal(decode_tables_bf16(packed.to(DEVICE)).cpu(), table_weights(packed).float().bfloat16())


@pytest.mark.parametrize("bits", [3, 4])
@pytest.mark.parametrize("columns", [(0, 512), (128, 640), (37, 38), (904, 1000)])
@pytest.mark.parametrize("rows", [(0, 20), (8, 16), (3, 13)])
def test_panels(rows, columns, bits):
    base = _base(bits, 20, 1000)
    panel = decode_tables_bf16(pack_tables(base).to(DEVICE), rows, columns)
    assert torch.equal(panel.cpu(), dequantise_table(base)[slice(*rows), slice(*columns)].bfloat16())


def test_what_does_not_fit_is_refused():
    packed = pack_tables(_base(3, 8, 130)).to(DEVICE)
    with pytest.raises(ValueError, match="not inside"):
        decode_tables_bf16(packed, None, (0, 131))
    with pytest.raises(ValueError, match="buffer of 8 x 130"):
        decode_tables_bf16(packed, out=torch.zeros(8, 128, dtype=torch.bfloat16, device=DEVICE))


@pytest.mark.skipif(not CUDA, reason="needs a GPU")
@pytest.mark.parametrize("bits", [3, 4])
@pytest.mark.parametrize(("rows", "columns"), [(6144, 4096), (4096, 14336), (960, 576), (1001, 1536)])
def test_model_shapes(rows, columns, bits):
    base = _base(bits, rows, columns)
    packed = pack_tables(base).to(DEVICE)
    exact = dequantise_table(base).bfloat16()
    assert torch.equal(decode_tables_bf16(packed).cpu(), exact)
    first = min(512, columns // 2)
    panel = decode_tables_bf16(packed, (8, 808), (first, columns - 128))
    assert torch.equal(panel.cpu(), exact[8:808, first:-128])
