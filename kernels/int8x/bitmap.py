"""Encoding, checking and decoding of nested bitmaps on the CPU; `reference` holds the plain definition."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from kernels.int8x import bits
from kernels.int8x.levels import (
    BLOCK,
    MAX_WEIGHTS,
    Levels,
    bitmap_lengths,
    blocks,
    check_levels,
    largest,
    words,
)
from kernels.int8x.pool import for_each
from kernels.int8x.streams import BitmapStreams

# 128 Ki weights: three buffers of a tile stay in a core's second-level cache.
TILE_BLOCKS = 128


def encode(q: torch.Tensor, levels: Levels) -> BitmapStreams:
    """int8 weights of any shape in nested bitmaps; ValueError if the last level does not hold them all."""
    check_levels(levels)
    if not 0 < q.numel() <= MAX_WEIGHTS:
        raise ValueError(f"{q.numel()} weights are outside 1 to {MAX_WEIGHTS}")
    rest = q.contiguous().reshape(-1).numpy()
    bitmaps, parts = [], []
    for width in levels[:-1]:
        bitmap, low, rest = _split(rest, largest(width))
        bitmaps.append(bitmap)
        parts.append(low)
    if rest.size and int(np.abs(rest.astype(np.int16)).max()) > largest(levels[-1]):
        raise ValueError(f"levels {levels} do not hold every weight")
    parts.append(rest)
    codes = [_pack(part, width) for part, width in zip(parts, levels, strict=True)]
    tables = _running_counts(bitmaps, q.numel())
    counts = tuple(part.size for part in parts)
    return BitmapStreams(levels, counts, _int32(bitmaps), _int32(tables), _int32(codes))


def check_streams(streams: BitmapStreams) -> None:
    """ValueError unless bitmaps, running counts and stream lengths tell one story; then decoding is safe."""
    lengths = bitmap_lengths(streams.counts)
    positions = np.arange(blocks(streams.n), dtype=np.int64) * BLOCK
    for level, (bitmap, table) in enumerate(zip(streams.bitmaps, streams.block_counts, strict=True)):
        packed, length = _uint32(bitmap), lengths[level]
        if length % 32 and packed[-1] >> (length % 32):
            raise ValueError(f"bitmap {level + 1} has ones beyond its end")
        expected = np.empty_like(positions)
        ones = bits.ones_before(packed, positions, expected)
        if ones != length - streams.counts[level]:
            raise ValueError(
                f"bitmap {level + 1} has {ones} ones, its streams {length - streams.counts[level]}"
            )
        if not np.array_equal(expected, table.numpy()):
            raise ValueError(f"the block counts of bitmap {level + 1} do not match it")
        positions = expected


def decode(streams: BitmapStreams) -> torch.Tensor:
    """All weights as int8 [n], tiles of blocks in parallel. Trusts its input: `check_streams` first."""
    out = torch.empty(streams.n, dtype=torch.int8)
    target = out.numpy()
    total = blocks(streams.n)
    tile = _tile_decoder(streams)

    def run(first: int) -> None:
        tile(first, min(first + TILE_BLOCKS, total), target[first * BLOCK : (first + TILE_BLOCKS) * BLOCK])

    for_each(run, range(0, total, TILE_BLOCKS))
    return out


def _tile_decoder(streams: BitmapStreams) -> Callable[[int, int, np.ndarray], None]:
    bitmaps = [_uint32(part) for part in streams.bitmaps]
    codes = [_uint32(part) for part in streams.codes]
    totals = [sum(streams.counts[level + 1 :]) for level in range(len(bitmaps))]
    tables = [
        np.append(part.numpy().astype(np.int64), total)
        for part, total in zip(streams.block_counts, totals, strict=True)
    ]

    def tile(first: int, end: int, out: np.ndarray) -> None:
        begins = [first * BLOCK, *(int(table[first]) for table in tables)]
        ends = [first * BLOCK + out.size, *(int(table[end]) for table in tables)]
        _decode_level(0, begins, ends, out)

    def _decode_level(level: int, begins: list[int], ends: list[int], out: np.ndarray) -> None:
        if level == len(bitmaps):
            bits.unpack(codes[level], streams.levels[level], begins[level], out)
            return
        later = ends[level + 1] - begins[level + 1]
        low = out.size - later
        parts = np.empty(out.size, np.int8)
        bits.unpack(codes[level], streams.levels[level], begins[level] - begins[level + 1], parts[:low])
        _decode_level(level + 1, begins, ends, parts[low:])
        bits.merge(bitmaps[level], begins[level], parts, low, out)

    return tile


def _split(values: np.ndarray, limit: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    bitmap = np.zeros(words(values.size), np.uint32)
    parts = np.empty_like(values)
    low = bits.split(values, limit, bitmap, parts)
    return bitmap, parts[:low], np.ascontiguousarray(parts[low:][::-1])


def _pack(values: np.ndarray, width: int) -> np.ndarray:
    packed = np.empty(words(values.size * width), np.uint32)
    bits.pack(values, width, packed)
    return packed


def _running_counts(bitmaps: list[np.ndarray], n: int) -> list[np.ndarray]:
    positions = np.arange(blocks(n), dtype=np.int64) * BLOCK
    tables = []
    for bitmap in bitmaps:
        counted = np.empty_like(positions)
        bits.ones_before(bitmap, positions, counted)
        tables.append(counted.astype(np.int32))
        positions = counted
    return tables


def _int32(parts: list[np.ndarray]) -> tuple[torch.Tensor, ...]:
    return tuple(torch.from_numpy(part.view(np.int32)) for part in parts)


def _uint32(part: torch.Tensor) -> np.ndarray:
    return part.numpy().view(np.uint32)
