"""Nested bitmaps in plain torch, bit by bit: the definition that every kernel is compared with."""

from __future__ import annotations

import torch

from kernels.int8x.levels import BLOCK, WORD_BITS, Levels, largest
from kernels.int8x.streams import BitmapStreams


def pack_bits(bits: torch.Tensor) -> torch.Tensor:
    """Bits (any shape, 0 or 1, taken in order) as int32 words, LSB first, the last padded with zeros."""
    flat = bits.reshape(-1).to(torch.int64)
    padded = torch.nn.functional.pad(flat, (0, -flat.numel() % WORD_BITS)).reshape(-1, WORD_BITS)
    return (padded << torch.arange(WORD_BITS)).sum(1).to(torch.int32)


def unpack_bits(packed: torch.Tensor, length: int) -> torch.Tensor:
    """The first `length` bits of int32 words as int64 [length]."""
    return ((packed.to(torch.int64)[:, None] >> torch.arange(WORD_BITS)) & 1).reshape(-1)[:length]


def pack_codes(values: torch.Tensor, width: int) -> torch.Tensor:
    """Values int8 [n] as codes of `width` bits in two's complement."""
    return pack_bits((values.to(torch.int64)[:, None] >> torch.arange(width)) & 1)


def unpack_codes(packed: torch.Tensor, width: int, n: int) -> torch.Tensor:
    """n codes of `width` bits, sign extended, as int8 [n]."""
    bits = unpack_bits(packed, n * width).reshape(n, width)
    weights = 1 << torch.arange(width)
    weights[-1] *= -1
    return (bits * weights).sum(1).to(torch.int8)


def encode(q: torch.Tensor, levels: Levels) -> BitmapStreams:
    """int8 weights of any shape in nested bitmaps; ValueError if the last level does not hold them all."""
    rest = q.reshape(-1)
    index = torch.arange(rest.numel())
    starts = torch.arange(0, rest.numel(), BLOCK)
    bitmaps, tables, codes = [], [], []
    for width in levels[:-1]:
        later = rest.to(torch.int64).abs() > largest(width)
        bitmaps.append(pack_bits(later))
        codes.append((rest[~later], width))
        rest, index = rest[later], index[later]
        tables.append(torch.searchsorted(index, starts).to(torch.int32))
    codes.append((rest, levels[-1]))
    if bool((rest.to(torch.int64).abs() > largest(levels[-1])).any()):
        raise ValueError(f"levels {levels} do not hold every weight")
    counts = tuple(values.numel() for values, _ in codes)
    packed = tuple(pack_codes(*code) for code in codes)
    return BitmapStreams(levels, counts, tuple(bitmaps), tuple(tables), packed)


def decode(streams: BitmapStreams) -> torch.Tensor:
    """All weights as int8 [n]; the tables of running counts are not needed."""
    out = torch.empty(streams.n, dtype=torch.int8)
    index = torch.arange(streams.n)
    for level, width in enumerate(streams.levels):
        here = index
        if level < len(streams.bitmaps):
            later = unpack_bits(streams.bitmaps[level], index.numel()).bool()
            here, index = index[~later], index[later]
        out[here] = unpack_codes(streams.codes[level], width, here.numel())
    return out


def absmax_step(weight: torch.Tensor, per_row: bool) -> torch.Tensor:
    """absmax / 127 of a finite, nonzero matrix [n_out, n_in], float32 [1] or [n_out]."""
    rows = weight.float() if per_row else weight.float().reshape(1, -1)
    return rows.abs().amax(1) / 127


def quantise(weight: torch.Tensor, step: torch.Tensor, columns: torch.Tensor | None = None) -> torch.Tensor:
    """INT8 rounding of a finite matrix [n_out, n_in] with steps [1] or [n_out] and column factors [n_in]."""
    scaled = weight.float() if columns is None else weight.float() * columns
    return torch.clamp(torch.round(scaled / step[:, None]), -127, 127).to(torch.int8)
