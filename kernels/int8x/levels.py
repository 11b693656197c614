"""Levels: which weights take how many bits, and what a choice of levels costs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise

import torch

Levels = tuple[int, ...]

PAPER_LEVELS: Levels = (3, 5, 8)
BLOCK = 1024
WORD_BITS = 32
MAX_LEVELS = 5
MAX_WEIGHTS = 2**31 - 1


def check_levels(levels: Sequence[int]) -> Levels:
    """The widths as a tuple, or ValueError: 2 to 5 strictly rising widths of 1 to 8 bits."""
    widths = tuple(levels)
    if not 2 <= len(widths) <= MAX_LEVELS:
        raise ValueError(f"2 to {MAX_LEVELS} levels are possible, not {len(widths)}")
    if any(type(width) is not int or not 1 <= width <= 8 for width in widths):
        raise ValueError(f"level widths must be whole numbers from 1 to 8, not {widths}")
    if any(low >= high for low, high in pairwise(widths)):
        raise ValueError(f"level widths must rise, not {widths}")
    return widths


def largest(width: int) -> int:
    """Largest |q| a level of `width` bits holds: symmetric (3 bits: 3, 5 bits: 15), all bytes for 8."""
    return 128 if width == 8 else (1 << (width - 1)) - 1


def level_counts(histogram: torch.Tensor, levels: Sequence[int]) -> tuple[int, ...]:
    """Weights per level, from a histogram int64 [256] over q + 128. ValueError if some q fits no level."""
    reach = _reach(histogram)
    if reach[levels[-1]] != reach[8]:
        raise ValueError(f"levels {tuple(levels)} do not hold every weight")
    return _between(reach, levels)


def best_levels(histogram: torch.Tensor) -> Levels:
    """The levels of fewest bytes for a histogram int64 [256] over q + 128, by trying all that hold it.

    Of equal sizes the one with the fewest levels, which decodes fastest.
    """
    reach = _reach(histogram)
    sets = (s for count in range(2, MAX_LEVELS + 1) for s in combinations(range(1, 9), count))
    holding = (levels for levels in sets if reach[levels[-1]] == reach[8])
    return min(holding, key=lambda levels: coded_bytes(_between(reach, levels), levels))


def words(bits: int) -> int:
    """32-bit words that `bits` bits fill."""
    return -(-bits // WORD_BITS)


def blocks(weights: int) -> int:
    """Blocks of 1024 that `weights` weights fill; the last may be short."""
    return -(-weights // BLOCK)


def bitmap_lengths(counts: Sequence[int]) -> list[int]:
    """Bits in each nested bitmap: one per weight that no earlier level holds."""
    remaining = sum(counts)
    lengths = []
    for count in counts[:-1]:
        lengths.append(remaining)
        remaining -= count
    return lengths


def coded_bytes(counts: Sequence[int], levels: Sequence[int]) -> int:
    """Exact bytes of all streams: bitmaps, running counts and codes, each padded to whole words."""
    tables = (len(levels) - 1) * blocks(sum(counts))
    flags = sum(words(bits) for bits in bitmap_lengths(counts))
    codes = sum(words(count * width) for count, width in zip(counts, levels, strict=True))
    return 4 * (tables + flags + codes)


def _reach(histogram: torch.Tensor) -> list[int]:
    """Weights that a level of 0, 1, … 8 bits holds."""
    magnitude = (torch.arange(256) - 128).abs()
    return [0, *(int(histogram[magnitude <= largest(width)].sum()) for width in range(1, 9))]


def _between(reach: Sequence[int], levels: Sequence[int]) -> tuple[int, ...]:
    return tuple(high - low for low, high in pairwise([0, *(reach[width] for width in levels)]))
