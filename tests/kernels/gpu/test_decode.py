"""Decoding gives back exactly what was packed, whole and in panels."""

from __future__ import annotations

import pytest
import torch

from kernels.gpu.decode import decode_bf16, decode_int8
from kernels.gpu.fields import ALL_FORMS, Form
from kernels.gpu.packing import pack_planes
from tests.kernels.gpu.samples import WORST, spread_rows, worst

CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"
TWINS = [True, False] if CUDA else [False]
# Every kind, and few enough widths that the interpreter is quick.
SOME = (Form(4), Form(8), Form(3, 3), Form(4, 3, True))


def _packed(q, scale=None, **packing):
    scale = torch.ones(1) if scale is None else scale
    return pack_planes(q.to(DEVICE), scale.to(DEVICE), **packing)


@pytest.mark.parametrize("asm", [CUDA])
@pytest.mark.parametrize("form", ALL_FORMS, ids=str)
def test_every_form_is_lossless(form, asm):
    sigma = 0.4 * 2 ** (form.width - 1) if form.short_bits else 2.0 ** (form.width - 2)
    q = spread_rows(8, 160, sigma, spread=0.1)
    q[5, 100] = -128
    q[6, 159] = 127
    planes = _packed(q, forms=(form,) if not form.escaped else (form, Form(8)))
    assert planes.forms() == [form]
    assert torch.equal(decode_int8(planes, asm=asm).cpu(), q)


@pytest.mark.parametrize("asm", TWINS)
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (8, 8), (3, 100), (9, 576)])
@pytest.mark.parametrize("unroll", [2, 4])
def test_odd_shapes_and_row_scales(rows, columns, unroll, asm):
    q = spread_rows(rows, columns, 4.0)
    scale = torch.rand(rows) + 0.5
    planes = _packed(q, scale, unroll=unroll, forms=SOME)
    assert torch.equal(decode_int8(planes, asm=asm).cpu(), q)
    expected = (q.float() * scale[:, None]).bfloat16()
    assert torch.equal(decode_bf16(planes, asm=asm).cpu(), expected)


@pytest.mark.parametrize("name", WORST)
def test_worst_inputs(name):
    q = worst(name, 8, 560)
    assert torch.equal(decode_int8(_packed(q, forms=SOME)).cpu(), q)


@pytest.mark.parametrize("columns", [(0, 256), (128, 640), (600, 700), (37, 38), (512, 700)])
def test_panels(columns):
    q = spread_rows(16, 700, 3.0)
    q[:, 620] = 90
    planes = _packed(q, torch.tensor([0.5]), forms=SOME)
    first, last = columns
    assert planes.patch_deltas.any()
    assert torch.equal(decode_int8(planes, column_range=columns).cpu(), q[:, first:last])
    panel = decode_bf16(planes, (3, 13), columns).cpu()
    assert torch.equal(panel, (q[3:13, first:last].float() * 0.5).bfloat16())


@pytest.mark.parametrize("columns", [(0, 1200), (512, 1024), (500, 1111)])
def test_more_patches_than_warps_take_in_a_round(columns):
    q = spread_rows(8, 1200, 2.0, spread=0.1).clamp(-8, 7)
    q[3, ::13] = -128
    q[6, 511:513] = 127
    planes = _packed(q, torch.tensor([0.3]), unroll=1, forms=(Form(4),))
    assert int(planes.table[-1, 2]) > 20
    panel = q[:, columns[0] : columns[1]]
    assert torch.equal(decode_int8(planes, column_range=columns).cpu(), panel)
    assert torch.equal(decode_bf16(planes, None, columns).cpu(), (panel.float() * 0.3).bfloat16())


@pytest.mark.parametrize("form", [Form(3), Form(8), Form(6, 5), Form(2, 4, True)], ids=str)
def test_bf16_rounds_like_torch(form):
    q = torch.arange(-128, 128).to(torch.int8).repeat(8, 1)
    if form.short_bits:
        q = q % (1 << form.width - 1)
        q[:, ::5] = form.highest
    # Some multiples of the second and third lie halfway between two values of bf16.
    scale = torch.tensor([1.0, 129 / 256, 257 / 256, 1.00390625 / 3, 0.0, -0.7, 2.0**-120, 2.0**120])
    planes = _packed(q, scale, forms=(form,) if not form.escaped else (form, Form(8)))
    assert torch.equal(decode_bf16(planes).cpu(), (q.float() * scale[:, None]).bfloat16())


def test_a_buffer_that_is_not_aligned():
    q = spread_rows(8, 256, 4.0)
    buffer = torch.zeros(8 * 256 + 1, dtype=torch.bfloat16, device=DEVICE)[1:].view(8, 256)
    assert decode_bf16(_packed(q, forms=SOME), out=buffer) is buffer
    assert torch.equal(buffer.cpu(), q.bfloat16())


def test_panels_must_lie_inside():
    planes = _packed(spread_rows(8, 130, 3.0))
    with pytest.raises(ValueError, match="not inside"):
        decode_int8(planes, column_range=(0, 131))
    with pytest.raises(ValueError, match="not inside"):
        decode_bf16(planes, (4, 4))


@pytest.mark.skipif(not CUDA, reason="needs a GPU")
@pytest.mark.parametrize("unroll", [1, 4])
@pytest.mark.parametrize("name", ["spread", *WORST])
def test_large_matrices(name, unroll):
    q = spread_rows(1000, 4608, 4.9) if name == "spread" else worst(name, 1000, 4608)
    planes = _packed(q, unroll=unroll)
    assert torch.equal(decode_int8(planes).cpu(), q)
    assert torch.equal(decode_bf16(planes, None, (1024, 2048)).cpu(), q[:, 1024:2048].bfloat16())
