"""Which levels pay: tables 4.1 and 4.2 of the INT8-X paper, by trying all of them on a histogram."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import torch

from kernels.int8x.levels import BLOCK, MAX_LEVELS, Levels, bitmap_lengths, coded_bytes, level_counts
from runtime.bench.samples import Sample
from runtime.bench.table import Row, Table, beside_paper

PAPER_SCHEMES: dict[Levels, float] = {
    (3, 4, 5, 6, 8): 5.33,
    (3, 4, 5, 8): 5.40,
    (3, 5, 8): 5.50,
    (2, 4, 6, 8): 5.70,
}
# First level: coverage, flag bits, data bits, total.
PAPER_SWEEP = {
    1: (0.138, 1.86, 3.91, 5.77),
    2: (0.276, 1.72, 4.14, 5.86),
    3: (0.555, 1.49, 4.01, 5.50),
    4: (0.828, 1.18, 4.35, 5.53),
    5: (0.959, 1.04, 4.96, 6.00),
}
LAST = 8
BF16_BITS = 16


def search_table(samples: list[Sample]) -> Table:
    """Table 4.1: the best of every number of levels, and the paper's four schemes."""
    rows = [row for sample in samples for row in _search_rows(sample)]
    notes = [
        "One set of levels for all matrices of a model; block tables (an int32 for each bitmap and 1024"
        " weights) are counted, scales are not."
    ]
    return Table("4.1", "Exhaustive search of levels (paper: 4.1)", beside_paper(rows), notes)


def sweep_table(samples: list[Sample]) -> Table:
    """Table 4.2: first levels of 1 to 5 bits, each with its best second level, beside the paper's rule."""
    rows = [row for sample in samples for row in _sweep_rows(sample)]
    notes = [
        "Bitmap: flags and their block tables. Levels: the best that begin so; first + 2 is the paper's rule,"
        " 8 bits at the end. A level of b bits holds |q| <= 2^(b-1) - 1, so one of 1 bit holds zeros alone;"
        " the paper's coverages of 1 and 2 bits are about a quarter and half of its 55.5 %."
    ]
    return Table("4.2", "Sweep of the first level (paper: 4.2)", beside_paper(rows), notes)


def bits_of(histogram: torch.Tensor, levels: Levels) -> float:
    """Bits per weight of nested bitmaps, block tables counted."""
    return 8 * coded_bytes(level_counts(histogram, levels), levels) / int(histogram.sum())


def best_of(histogram: torch.Tensor, count: int, first: int | None = None) -> Levels:
    """The smallest of all sets of `count` levels that end in 8 bits (and begin with `first`)."""
    sets = ((*low, LAST) for low in combinations(range(1, LAST), count - 1))
    return min((s for s in sets if first in (None, s[0])), key=lambda levels: bits_of(histogram, levels))


def _search_rows(sample: Sample) -> Iterator[Row]:
    histogram = sample.histogram
    best = {best_of(histogram, count): f"best of {count}" for count in range(2, MAX_LEVELS + 1)}
    for levels in [*best, *(scheme for scheme in PAPER_SCHEMES if scheme not in best)]:
        bits = bits_of(histogram, levels)
        yield {
            "weights": sample.name,
            "levels": named(levels),
            "": best.get(levels, ""),
            "bit/w": bits,
            "x bf16": BF16_BITS / bits,
            "paper": PAPER_SCHEMES.get(levels),
        }


def _sweep_rows(sample: Sample) -> Iterator[Row]:
    histogram = sample.histogram
    for first, paper in PAPER_SWEEP.items():
        levels = best_of(histogram, 3, first)
        counts, weights = level_counts(histogram, levels), int(histogram.sum())
        tables = (len(levels) - 1) * 32 / BLOCK
        data = sum(count * width for count, width in zip(counts, levels, strict=True)) / weights
        yield {
            "weights": sample.name,
            "first level": first,
            "levels": named(levels),
            "coverage": counts[0] / weights,
            "bitmap": sum(bitmap_lengths(counts)) / weights + tables,
            "data": data,
            "total": bits_of(histogram, levels),
            "first + 2": bits_of(histogram, (first, first + 2, LAST)),
            "paper coverage": paper[0],
            "paper bitmap": paper[1],
            "paper data": paper[2],
            "paper total": paper[3],
        }


def named(levels: Levels) -> str:
    """(3,5,8)"""
    return f"({','.join(map(str, levels))})"
