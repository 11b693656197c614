"""The fused product of a re-arranged bitmap against exact sums, and its primitives against numpy."""

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from kernels.gpu.bitmap_pack import pack_bitmap
from kernels.gpu.bitmap_primitives import byte_permute, funnel_right
from kernels.gpu.bitmap_product import BitmapLaunch, bitmap_launch, bitmap_product
from kernels.gpu.prepare import prepare
from kernels.gpu.primitives import launch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@triton.jit
def _primitives(low, high, third, permuted, shifted, ASM: tl.constexpr):
    i = tl.arange(0, 256)
    a, b = tl.load(low + i).to(tl.uint32, bitcast=True), tl.load(high + i).to(tl.uint32, bitcast=True)
    c = tl.load(third + i).to(tl.uint32, bitcast=True)
    tl.store(permuted + i, byte_permute(a, b, c, ASM).to(tl.int32, bitcast=True))
    tl.store(shifted + i, funnel_right(a, b, c, ASM).to(tl.int32, bitcast=True))


@pytest.mark.parametrize("asm", [True, False])
def test_primitives(asm):
    low, high, third = np.random.default_rng(0).integers(-(2**31), 2**31, (3, 256), dtype=np.int32)
    inputs = [torch.from_numpy(part).to(DEVICE) for part in (low, high, third)]
    permuted, shifted = torch.zeros(2, 256, dtype=torch.int32, device=DEVICE)
    launch(_primitives, (1,), *inputs, permuted, shifted, num_warps=8, asm=asm)
    octets = np.concatenate([low.view(np.uint8).reshape(-1, 4), high.view(np.uint8).reshape(-1, 4)], 1)
    nibbles = (third.view(np.uint32)[:, None] >> np.arange(0, 16, 4)) & 15
    chosen = np.take_along_axis(octets, (nibbles & 7).astype(np.int64), 1)
    chosen = np.where(nibbles > 7, np.where(chosen > 127, 255, 0), chosen).astype(np.uint8)
    assert (permuted.cpu().numpy() == np.ascontiguousarray(chosen).view(np.int32)[:, 0]).all()
    pair = high.view(np.uint32).astype(object) * 2**32 + low.view(np.uint32)
    expected = [(p >> (int(s) & 31)) & 0xFFFFFFFF for p, s in zip(pair, third, strict=True)]
    assert shifted.cpu().numpy().view(np.uint32).tolist() == expected


def weights(rows, columns, spread, seed=0):
    values = torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed)) * spread
    return values.round().clamp(-128, 127).to(torch.int8)


def product(q, scale, x, warps=2):
    planes = pack_bitmap(q.to(DEVICE), scale.to(DEVICE))
    return bitmap_product(planes, prepare(x.to(DEVICE), by_chunk=False), config=BitmapLaunch(warps)).cpu()


@pytest.mark.parametrize(
    ("rows", "columns", "batch", "spread", "warps"),
    [
        (1, 1, 1, 90, 1),
        (8, 128, 1, 9, 1),
        (9, 576, 3, 9, 2),
        (8, 1000, 2, 200, 4),
        (3, 2200, 1, 30, 1),
        (17, 100, 8, 12, 2),
        (8, 1536, 1, 0, 2),
    ],
)
def test_whole_numbers_are_summed_exactly(rows, columns, batch, spread, warps):
    q = weights(rows, columns, spread)
    x = torch.randint(-7, 8, (batch, columns), generator=torch.Generator().manual_seed(1)).float()
    assert torch.equal(product(q, torch.ones(1), x, warps).double(), x.double() @ q.double().t())


@pytest.mark.parametrize("outliers", [False, True])
@pytest.mark.parametrize("per_row", [False, True])
def test_close_to_float64(outliers, per_row):
    q, x = weights(16, 700, 12), torch.randn(2, 700, generator=torch.Generator().manual_seed(2))
    if outliers:
        x[:, ::97] *= 50
    scale = torch.rand(16 if per_row else 1) + 0.1
    exact = x.double() @ (q.double() * scale.double()[:, None]).t()
    error = (product(q, scale, x) - exact).norm() / exact.norm()
    assert error < 1e-6


@pytest.mark.parametrize("value", [-128, -20, -5, -4, 3, 4, 19, 20, 127])
def test_rows_of_one_value(value):
    q = torch.full((8, 256), value, dtype=torch.int8)
    x = torch.arange(256).float()[None]
    assert torch.equal(product(q, torch.ones(1), x), x.sum() * value * torch.ones(1, 8))


def test_one_heavy_row_among_light_ones():
    q = weights(16, 512, 2)
    q[5] = 127
    x = torch.randint(-7, 8, (1, 512)).float()
    assert torch.equal(product(q, torch.ones(1), x, 4).double(), x.double() @ q.double().t())


def test_any_split_gives_the_same_sums():
    q, x = weights(8, 1200, 9), torch.randint(-7, 8, (1, 1200)).float()
    first = product(q, torch.ones(1), x, 1)
    assert all(torch.equal(first, product(q, torch.ones(1), x, warps)) for warps in (2, 16))


def test_launches():
    small = pack_bitmap(weights(8, 1000, 9), torch.ones(1))
    assert bitmap_launch(small).warps == 8
    assert bitmap_launch(pack_bitmap(weights(8, 8192, 9), torch.ones(1))).warps == 16
    assert bitmap_launch(pack_bitmap(weights(16384, 8, 9), torch.ones(1))).warps == 4
    with pytest.raises(ValueError, match="3 warps"):
        BitmapLaunch(3)
    with pytest.raises(ValueError, match="x has 100 columns"):
        bitmap_product(small, prepare(torch.zeros(100, device=DEVICE), by_chunk=False))
    with pytest.raises(ValueError, match="not prepared by chunk"):
        bitmap_product(small, prepare(torch.zeros(1000, device=DEVICE)))


def test_rounds_in_flight_do_not_matter():
    q, x = weights(8, 300, 40), torch.randint(-7, 8, (1, 300)).float()
    planes = pack_bitmap(q.to(DEVICE), torch.ones(1).to(DEVICE))
    prepared = prepare(x.to(DEVICE), by_chunk=False)
    for rounds in (1, 2, 4):
        y = bitmap_product(planes, prepared, config=BitmapLaunch(2, rounds)).cpu()
        assert torch.equal(y.double(), x.double() @ q.double().t())
