"""The fused decoder and the product from streams, against the plain reference of the format."""

import dataclasses
from itertools import combinations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.gpu.bitmap_decode import bitmap_decode_bf16, bitmap_decode_int8
from kernels.gpu.bitmap_matrix import BitmapMatrix, load_bitmap
from kernels.gpu.bitmap_rows import bitmap_product_streams
from kernels.int8x import encode, reference

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
EVERY_LEVELS = [(*low, 8) for count in range(1, 5) for low in combinations(range(1, 8), count)]
# Each choice of levels is compiled on its own; the interpreter can try them all.
LEVELS = EVERY_LEVELS[::14] if torch.cuda.is_available() else EVERY_LEVELS


def weights(n, spread, seed=0):
    values = torch.randn(n, generator=torch.Generator().manual_seed(seed)) * spread
    return values.round().clamp(-128, 127).to(torch.int8)


def matrix_of(q, levels=(3, 5, 8), scale=None):
    scale = torch.ones(1) if scale is None else scale
    return load_bitmap(encode(q, levels), (q.shape[0], q.shape[1]), scale, DEVICE)


def decodes(q, levels):
    streams = encode(q, levels)
    decoded = bitmap_decode_int8(load_bitmap(streams, (1, q.numel()), torch.ones(1), DEVICE))
    assert torch.equal(decoded.cpu().reshape(-1), reference.decode(streams))
    assert torch.equal(decoded.cpu().reshape(-1), q)


@pytest.mark.parametrize("n", [1, 2, 31, 33, 1023, 1024, 1025, 4096, 5003])
def test_sizes(n):
    decodes(weights(n, 8), (3, 5, 8))


@pytest.mark.parametrize("value", [0, -3, 4, -15, 16, 127, -128])
def test_one_level_only(value):
    decodes(torch.full((1500,), value, dtype=torch.int8), (3, 5, 8))


@given(
    st.integers(1, 3500),
    st.sampled_from(LEVELS),
    st.sampled_from([0.5, 3.0, 12.0, 60.0, 1e4]),
    st.integers(0, 10),
)
@settings(max_examples=60, deadline=None)
def test_any_levels_and_distribution(n, levels, spread, seed):
    decodes(weights(n, spread, seed), levels)


def test_levels_below_eight_bits():
    decodes(weights(2000, 2).clamp(-7, 7), (2, 4))


@pytest.mark.parametrize("per_row", [False, True])
def test_bf16_is_rounded_once(per_row):
    q = weights(7 * 300, 12).reshape(7, 300)
    scale = torch.rand(7 if per_row else 1) + 0.1
    expected = (q.float() * scale[:, None]).to(torch.bfloat16)
    assert torch.equal(bitmap_decode_bf16(matrix_of(q, scale=scale)).cpu(), expected)


@pytest.mark.parametrize(
    ("rows", "columns", "batch", "levels"),
    [
        (1, 1, 1, (3, 5, 8)),
        (100, 3, 2, (5, 8)),
        (3, 1000, 5, (3, 4, 5, 6, 8)),
        (2, 3000, 8, (3, 5, 8)),
        (5, 1024, 1, (2, 4, 6, 8)),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_product_from_streams(rows, columns, batch, levels, dtype):
    q = weights(rows * columns, 12).reshape(rows, columns)
    scale, x = torch.rand(rows) + 0.1, torch.randn(batch, columns).to(dtype)
    y = bitmap_product_streams(matrix_of(q, levels, scale), x.to(DEVICE)).cpu()
    exact = x.double() @ (q.double() * scale.double()[:, None]).t()
    # Sums of float32 in another order: some rounding steps of the largest partial sum.
    bound = 2e-6 * (x.double().abs() @ (q.double().abs() * scale.double()[:, None]).t())
    assert ((y - exact).abs() <= bound).all()


def test_streams_that_contradict_each_other_are_refused():
    streams = encode(weights(3000, 9), (3, 5, 8))
    moved = streams.block_counts[0].clone()
    moved[1] += 1
    damaged = dataclasses.replace(streams, block_counts=(moved, streams.block_counts[1]))
    with pytest.raises(ValueError, match="block counts of bitmap 1"):
        load_bitmap(damaged, (1, 3000), torch.ones(1), DEVICE)


@pytest.mark.parametrize(
    ("shape", "scale", "says"),
    [
        ((3, 999), torch.ones(1), "do not fill"),
        ((3, 1000), torch.ones(2), "2 scales for 3 rows"),
        ((3, 1000), torch.ones(3, 1), "flat float32"),
        ((3, 1000), torch.ones(1).double(), "flat float32"),
    ],
)
def test_shapes_that_do_not_fit(shape, scale, says):
    with pytest.raises(ValueError, match=says):
        BitmapMatrix(encode(weights(3000, 9), (3, 5, 8)), *shape, scale)


@pytest.mark.parametrize("shape", [(9, 300), (0, 300), (2, 299), (300,)])
def test_activations_that_do_not_fit(shape):
    with pytest.raises(ValueError, match="is not"):
        bitmap_product_streams(matrix_of(weights(900, 9).reshape(3, 300)), torch.zeros(shape, device=DEVICE))
