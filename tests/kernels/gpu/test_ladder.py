"""All decoders of the ladder give the encoder's input back."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.gpu.bitmap_decode import bitmap_decode_int8
from kernels.gpu.bitmap_matrix import load_bitmap
from kernels.gpu.ladder import decode_bit_loop, decode_vectorised
from kernels.gpu.ladder_triton import decode_outside_sums
from kernels.int8x import encode

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def all_decode(q, levels):
    streams = encode(q, levels)
    matrix = load_bitmap(streams, (1, q.numel()), torch.ones(1), DEVICE)
    assert torch.equal(decode_bit_loop(streams), q)
    assert torch.equal(decode_vectorised(matrix.streams).cpu(), q)
    assert torch.equal(decode_outside_sums(matrix.streams).cpu(), q)
    assert torch.equal(bitmap_decode_int8(matrix).cpu().reshape(-1), q)


@pytest.mark.parametrize("levels", [(3, 5, 8), (1, 8), (3, 4, 5, 6, 8), (7, 8)])
def test_every_value(levels):
    all_decode(torch.arange(-128, 128).to(torch.int8).repeat(5), levels)


@given(st.integers(1, 2500), st.sampled_from([1.0, 9.0, 1e3]), st.integers(0, 9))
@settings(max_examples=25, deadline=None)
def test_any_size(n, spread, seed):
    values = torch.randn(n, generator=torch.Generator().manual_seed(seed)) * spread
    all_decode(values.round().clamp(-128, 127).to(torch.int8), (3, 5, 8))
