"""On a GPU, against float64: shapes too large to interpret, every way to split the work."""

import pytest
import torch

from kernels.gpu.bitmap_decode import bitmap_decode_bf16, bitmap_decode_int8
from kernels.gpu.bitmap_matrix import load_bitmap
from kernels.gpu.bitmap_pack import pack_bitmap
from kernels.gpu.bitmap_product import BitmapLaunch, bitmap_product
from kernels.gpu.bitmap_rows import bitmap_product_streams
from kernels.gpu.prepare import prepare
from kernels.int8x import encode

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")

SHAPES = [(1, 1), (8, 8), (100, 100), (576, 576), (1000, 1000), (1536, 2048), (333, 4608), (4096, 4096)]


def weights(rows, columns, kind):
    generator = torch.Generator().manual_seed(rows + columns)
    if kind == "zeros":
        return torch.zeros(rows, columns, dtype=torch.int8)
    if kind == "extreme":
        return torch.where(torch.rand(rows, columns, generator=generator) < 0.5, -127, 127).to(torch.int8)
    if kind == "uniform":
        return torch.randint(-128, 128, (rows, columns), generator=generator).to(torch.int8)
    spread = torch.exp(torch.randn(rows, 1, generator=generator) * 0.55 + 1.6)
    q = (torch.randn(rows, columns, generator=generator) * spread).round().clamp(-127, 127).to(torch.int8)
    if kind == "one heavy row":
        q[rows // 2] = 127
    return q


@pytest.mark.parametrize("kind", ["zeros", "extreme", "uniform", "normal", "one heavy row"])
@pytest.mark.parametrize(("rows", "columns"), SHAPES)
def test_product(rows, columns, kind):
    q, scale = weights(rows, columns, kind).cuda(), torch.rand(rows).cuda() + 0.1
    planes = pack_bitmap(q, scale)
    for batch, warps in ((1, 1), (1, 4), (1, 16), (3, 4), (8, 4)):
        x = torch.randn(batch, columns, device="cuda")
        x[:, ::101] *= 50
        prepared = prepare(x, by_chunk=False)
        exact = x.double() @ (q.double() * scale.double()[:, None]).t()
        y = bitmap_product(planes, prepared, config=BitmapLaunch(warps))
        assert (y - exact).norm() <= 1e-6 * exact.norm()
        assert torch.equal(y, bitmap_product(planes, prepared, config=BitmapLaunch(warps)))


@pytest.mark.parametrize("levels", [(3, 5, 8), (5, 8), (3, 4, 5, 6, 8)])
@pytest.mark.parametrize(("rows", "columns"), SHAPES)
def test_decode_and_product_from_streams(rows, columns, levels):
    q, scale = weights(rows, columns, "normal"), torch.rand(rows) + 0.1
    matrix = load_bitmap(encode(q, levels), (rows, columns), scale, "cuda")
    assert torch.equal(bitmap_decode_int8(matrix).cpu(), q)
    assert torch.equal(bitmap_decode_bf16(matrix).cpu(), (q.float() * scale[:, None]).to(torch.bfloat16))
    x = torch.randn(3, columns)
    exact = x.double() @ (q.double() * scale.double()[:, None]).t()
    assert (bitmap_product_streams(matrix, x.cuda()).cpu() - exact).norm() <= 1e-6 * exact.norm()
