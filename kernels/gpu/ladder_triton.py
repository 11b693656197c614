"""The last two decoders of table 3.4 of the INT8-X paper: v9, and v10, which is `bitmap_decode_int8`.

v9 extracts codes in a kernel, but torch sums the bitmaps over the whole tensor first, through memory.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernels.gpu.bitmap_decode import code_at
from kernels.gpu.ladder import unpacked_bits
from kernels.int8x import BitmapStreams
from kernels.int8x.levels import bitmap_lengths

_TILE = tl.constexpr(1024)


@triton.jit
def _extract(
    out: tl.tensor, flags: tl.tuple, sums: tl.tuple, codes: tl.tuple, n: tl.tensor, LEVELS: tl.constexpr
) -> None:
    LAST: tl.constexpr = len(LEVELS) - 1
    at = tl.program_id(0) * _TILE + tl.arange(0, _TILE)
    position = at
    left = at < n
    value = tl.zeros([_TILE], tl.int32)
    for level in tl.static_range(LAST):
        later = tl.load(flags[level] + position, mask=left, other=0)
        ones = tl.load(sums[level] + position, mask=left, other=0) - later
        here = left & (later == 0)
        value = tl.where(here, code_at(codes[level], position - ones, LEVELS[level], here), value)
        left = left & (later != 0)
        position = ones
    value = tl.where(left, code_at(codes[LAST], position, LEVELS[LAST], left), value)
    tl.store(out + at, value.to(tl.int8), mask=at < n)


def decode_outside_sums(streams: BitmapStreams) -> torch.Tensor:
    """v9: torch unpacks and sums the bitmaps, a kernel takes the codes; int8 [n] where the streams lie."""
    out = torch.empty(streams.n, dtype=torch.int8, device=streams.codes[0].device)
    lengths = bitmap_lengths(streams.counts)
    flags = tuple(unpacked_bits(part, length) for part, length in zip(streams.bitmaps, lengths, strict=True))
    sums = tuple(torch.cumsum(part, 0, dtype=torch.int32) for part in flags)
    grid = (triton.cdiv(streams.n, _TILE.value),)
    _extract[grid](out, flags, sums, streams.codes, streams.n, streams.levels, num_warps=4)
    return out
