"""Decoding of nested bitmaps in one kernel, straight from the file's streams, for any 2 to 5 levels.

One program decodes one block of 1024 weights: it reads the bitmap, sums it inside the block, takes the codes
(which may straddle words) and selects. Source: the INT8-X paper's fused kernel, section 2.4.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernels.gpu.bitmap_matrix import BitmapMatrix
from kernels.int8x.levels import BLOCK, blocks

_BLOCK = tl.constexpr(BLOCK)
_WARPS = 4


@triton.jit
def code_at(words: tl.tensor, rank: tl.tensor, width: tl.tensor, wanted: tl.tensor) -> tl.tensor:
    """Code number `rank` of `width` bits in the stream at `words`, sign extended, where `wanted`.

    32 codes fill `width` words exactly, so no product here exceeds int32 for any tensor.
    """
    bit = (rank & 31) * width
    words += (rank >> 5) * width + (bit >> 5)
    shift = bit & 31
    low = tl.load(words, mask=wanted, other=0).to(tl.uint32, bitcast=True)
    straddles = wanted & (shift + width > 32)
    high = tl.load(words + 1, mask=straddles, other=0).to(tl.uint32, bitcast=True)
    code = (low >> shift) | (high << ((32 - shift) & 31))
    return (code << (32 - width)).to(tl.int32, bitcast=True) >> (32 - width)


@triton.jit
def rounded_bf16(value: tl.tensor) -> tl.tensor:
    # Round half to even on the bits: Triton's interpreter would cut the low half off instead.
    bits = value.to(tl.uint32, bitcast=True)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return rounded.to(tl.uint16).to(tl.bfloat16, bitcast=True)


@triton.jit
def block_values(
    bitmaps: tl.tuple, tables: tl.tuple, codes: tl.tuple, block: tl.tensor, n: tl.tensor, LEVELS: tl.constexpr
) -> tl.tensor:
    """The weights of one block as int32 [1024]; lanes beyond the tensor's n weights hold no weight.

    At every level a weight's position among those left is known; the ones before it in the bitmap are its
    position at the next level, and the difference is its place in this level's codes.
    """
    LAST: tl.constexpr = len(LEVELS) - 1
    inside = block * _BLOCK + tl.arange(0, _BLOCK) < n
    left = inside
    position = block * _BLOCK + tl.arange(0, _BLOCK)
    rank = position
    width = tl.zeros([_BLOCK], tl.int32) + LEVELS[LAST]
    stream = tl.broadcast_to(codes[LAST], [_BLOCK])
    for level in tl.static_range(LAST):
        word = tl.load(bitmaps[level] + (position >> 5), mask=left, other=0)
        later = (word >> (position & 31)) & 1
        ones = tl.load(tables[level] + block) + tl.cumsum(later, 0) - later
        here = left & (later == 0)
        rank = tl.where(left, tl.where(here, position - ones, ones), rank)
        width = tl.where(here, LEVELS[level], width)
        stream = tl.where(here, codes[level], stream)
        left = left & (later != 0)
        position = ones
    return code_at(stream, rank, width, inside)


@triton.jit
def _decode_int8(
    out: tl.tensor, bitmaps: tl.tuple, tables: tl.tuple, codes: tl.tuple, n: tl.tensor, LEVELS: tl.constexpr
) -> None:
    block = tl.program_id(0)
    value = block_values(bitmaps, tables, codes, block, n, LEVELS)
    at = block * _BLOCK + tl.arange(0, _BLOCK)
    tl.store(out + at, value.to(tl.int8), mask=at < n)


@triton.jit
def _decode_bf16(
    out: tl.tensor, scale: tl.tensor, bitmaps: tl.tuple, tables: tl.tuple, codes: tl.tuple, n: tl.tensor,
    n_in: tl.tensor, stride: tl.tensor, LEVELS: tl.constexpr,
) -> None:  # fmt: skip
    block = tl.program_id(0)
    value = block_values(bitmaps, tables, codes, block, n, LEVELS)
    at = block * _BLOCK + tl.arange(0, _BLOCK)
    step = tl.load(scale + at // n_in * stride, mask=at < n, other=0.0)
    tl.store(out + at, rounded_bf16(value.to(tl.float32) * step), mask=at < n)


def bitmap_decode_int8(matrix: BitmapMatrix) -> torch.Tensor:
    """The exact weights q, int8 [n_out, n_in]."""
    out = torch.empty(matrix.n_out, matrix.n_in, dtype=torch.int8, device=matrix.device)
    streams = matrix.streams
    _decode_int8[(blocks(streams.n),)](
        out, streams.bitmaps, streams.block_counts, streams.codes, streams.n, streams.levels, num_warps=_WARPS
    )
    return out


def bitmap_decode_bf16(matrix: BitmapMatrix) -> torch.Tensor:
    """Weights q times scale, rounded once to bfloat16 [n_out, n_in]."""
    out = torch.empty(matrix.n_out, matrix.n_in, dtype=torch.bfloat16, device=matrix.device)
    streams = matrix.streams
    _decode_bf16[(blocks(streams.n),)](
        out, matrix.scale, streams.bitmaps, streams.block_counts, streams.codes, streams.n, matrix.n_in,
        matrix.scale_stride, streams.levels, num_warps=_WARPS,
    )  # fmt: skip
    return out
