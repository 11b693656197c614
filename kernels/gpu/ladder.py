"""The decoders that came before the fused kernel, for comparison: table 3.4 of the INT8-X paper, v7 and v8.

All take checked streams (`kernels.int8x.check_streams`) and give the same int8 weights.
"""

from __future__ import annotations

import torch

from kernels.int8x import BitmapStreams
from kernels.int8x.levels import WORD_BITS, bitmap_lengths


def decode_bit_loop(streams: BitmapStreams) -> torch.Tensor:
    """v7: one weight and one bit at a time in Python; int8 [n] in host memory."""
    bitmaps = [part.tolist() for part in streams.bitmaps]
    codes = [part.tolist() for part in streams.codes]
    bit_of_bitmap, used = [0] * len(bitmaps), [0] * len(codes)
    values = []
    for _ in range(streams.n):
        level = 0
        while level < len(bitmaps):
            later = _bits(bitmaps[level], bit_of_bitmap[level], 1)
            bit_of_bitmap[level] += 1
            if not later:
                break
            level += 1
        width = streams.levels[level]
        code = _bits(codes[level], used[level] * width, width)
        used[level] += 1
        values.append(code - ((code >> (width - 1)) << width))
    return torch.tensor(values, dtype=torch.int8)


def decode_vectorised(streams: BitmapStreams) -> torch.Tensor:
    """v8: whole streams unpacked by torch operations; int8 [n] where the streams lie."""
    lengths = bitmap_lengths(streams.counts)
    device = streams.codes[0].device
    out = torch.empty(streams.n, dtype=torch.int8, device=device)
    index = torch.arange(streams.n, device=device)
    for level, (codes, width) in enumerate(zip(streams.codes, streams.levels, strict=True)):
        here = index
        if level < len(lengths):
            later = unpacked_bits(streams.bitmaps[level], lengths[level]).bool()
            here, index = index[~later], index[later]
        out[here] = _values(codes, width, streams.counts[level])
    return out


def unpacked_bits(words: torch.Tensor, length: int) -> torch.Tensor:
    """The first `length` bits of int32 words, LSB first, as int8 [length]."""
    shifts = torch.arange(WORD_BITS, dtype=torch.int32, device=words.device)
    return ((words[:, None] >> shifts) & 1).to(torch.int8).reshape(-1)[:length]


def _bits(words: list[int], first: int, count: int) -> int:
    value = 0
    for offset in range(count):
        at = first + offset
        value |= ((words[at // WORD_BITS] >> (at % WORD_BITS)) & 1) << offset
    return value


def _values(words: torch.Tensor, width: int, count: int) -> torch.Tensor:
    bits = unpacked_bits(words, count * width).reshape(count, width)
    value = bits[:, width - 1].neg() << (width - 1)
    for place in range(width - 1):
        value |= bits[:, place] << place
    return value
