"""The coded form of one tensor under nested bitmaps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from kernels.int8x.levels import (
    MAX_WEIGHTS,
    Levels,
    bitmap_lengths,
    blocks,
    check_levels,
    words,
)


def stream_words(levels: Sequence[int], counts: Sequence[int]) -> tuple[list[int], int, list[int]]:
    """Lengths in int32 words: of each bitmap, of each table of running counts, of each level's codes."""
    codes = [words(count * width) for count, width in zip(counts, levels, strict=True)]
    return [words(bits) for bits in bitmap_lengths(counts)], blocks(sum(counts)), codes


@dataclass(frozen=True, slots=True)
class BitmapStreams:
    """One tensor's n weights, `counts[l]` of them in level l of `levels[l]` bits.

    All tensors are flat int32, bits LSB first. `bitmaps[l]` has one bit per weight that levels before l do
    not hold: 0 for level l, 1 for a later one. `block_counts[l][j]` is the number of ones of bitmap l that
    belong to weights before block j of 1024. `codes[l]` are the level's weights in order, two's complement.
    Lengths are checked here (ValueError); `check_streams` compares their content.
    """

    levels: Levels
    counts: tuple[int, ...]
    bitmaps: tuple[torch.Tensor, ...]
    block_counts: tuple[torch.Tensor, ...]
    codes: tuple[torch.Tensor, ...]

    def __post_init__(self) -> None:
        check_levels(self.levels)
        self._check_counts()
        bitmaps, tables, codes = stream_words(self.levels, self.counts)
        _check_lengths("bitmap", self.bitmaps, bitmaps)
        _check_lengths("block count", self.block_counts, [tables] * len(bitmaps))
        _check_lengths("code", self.codes, codes)

    @property
    def n(self) -> int:
        """Number of weights."""
        return sum(self.counts)

    @property
    def nbytes(self) -> int:
        """Bytes of all streams and tables."""
        return sum(4 * part.numel() for part in (*self.bitmaps, *self.block_counts, *self.codes))

    def _check_counts(self) -> None:
        if len(self.counts) != len(self.levels) or any(count < 0 for count in self.counts):
            raise ValueError(f"counts {self.counts} do not belong to levels {self.levels}")
        if not 0 < self.n <= MAX_WEIGHTS:
            raise ValueError(f"{self.n} weights are outside 1 to {MAX_WEIGHTS}")


def _check_lengths(kind: str, parts: Sequence[torch.Tensor], expected: Sequence[int]) -> None:
    if len(parts) != len(expected):
        raise ValueError(f"{len(parts)} {kind} streams where {len(expected)} belong")
    for level, (part, length) in enumerate(zip(parts, expected, strict=True), 1):
        if part.dtype != torch.int32 or part.dim() != 1 or not part.is_contiguous():
            raise ValueError(f"{kind} stream {level} is not a flat int32 tensor")
        if part.numel() != length:
            raise ValueError(f"{kind} stream {level} has {part.numel()} words instead of {length}")
