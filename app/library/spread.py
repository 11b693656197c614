"""Figures of an INT8-X model as rows of characters: a histogram of bits per weight, bars up to a byte."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor

import msgspec

BLOCKS = " ▁▂▃▄▅▆▇█"
STEPS = (0.05, 0.1, 0.25, 0.5, 1.0)
UNITS = (0.1, 0.2, 0.5, 1.0, 2.0)
# A label and a gap beside it.
LABEL_CELLS = 5
PLAIN_BITS = 8.0
MAX_CELLS = 4


class Measured(msgspec.Struct, frozen=True):
    """A tensor or a kind of tensors as the job "int8x_inspect" measured it."""

    kind: str
    weights: int
    bits_per_weight: float
    entropy_bits_per_weight: float
    huffman_bits_per_weight: float
    share: dict[str, float] = {}
    tensors: int = 1


class Inspection(msgspec.Struct, frozen=True):
    """That job's result, as far as it is drawn."""

    tensors: tuple[Measured, ...]
    kinds: tuple[Measured, ...]
    decoder_linears: Measured
    total: Measured


@dataclass(frozen=True, slots=True)
class Histogram:
    """Shares of all weights by bits per weight, from `low` on, every bin `step` wide."""

    low: float
    step: float
    shares: tuple[float, ...]

    @property
    def high(self) -> float:
        """The end of the last bin."""
        return self.low + self.step * len(self.shares)


def histogram(tensors: Sequence[Measured], most_bins: int) -> Histogram:
    """Weights by the bits of their tensor, in the finest steps that fit; ValueError for no tensor."""
    if not tensors:
        raise ValueError("there is nothing to count")
    low, high = (pick(tensor.bits_per_weight for tensor in tensors) for pick in (min, max))
    step = next((step for step in STEPS if _bins(low, high, step) <= most_bins), STEPS[-1])
    first, count = floor(low / step + 1e-9), _bins(low, high, step)
    sums = [0] * count
    for tensor in tensors:
        sums[min(count - 1, floor(tensor.bits_per_weight / step + 1e-9) - first)] += tensor.weights
    total = max(1, sum(sums))
    return Histogram(first * step, step, tuple(each / total for each in sums))


def _bins(low: float, high: float, step: float) -> int:
    return floor(high / step + 1e-9) - floor(low / step + 1e-9) + 1


def columns(shares: Sequence[float], height: int, cells: int) -> list[str]:
    """Rows from top to bottom; the largest share fills the height, and none that is not zero vanishes."""
    top = max(shares, default=0.0) or 1.0
    eighths = [ceil(8 * height * share / top - 1e-9) for share in shares]
    rows = []
    for row in range(height - 1, -1, -1):
        rows.append("".join(BLOCKS[min(8, max(0, level - 8 * row))] * cells for level in eighths))
    return rows


def axis(drawn: Histogram, cells: int) -> str:
    """Labels under the columns, at the left edge of their bin: multiples of a round number of bits."""
    unit = next((unit for unit in UNITS if cells * unit / drawn.step >= LABEL_CELLS), UNITS[-1])
    line = ""
    for index in range(len(drawn.shares) + 1):
        value = drawn.low + index * drawn.step
        if abs(value / unit - round(value / unit)) < 1e-6:
            line = f"{line:<{index * cells}}{value:g}"
    return line


def cells_for(bins: int, width: int) -> int:
    """How wide a column may be."""
    return max(1, min(MAX_CELLS, width // max(1, bins)))


def bar(measured: Measured, cells: int) -> tuple[int, int, int]:
    """Cells of a bar as long as a plain byte: the entropy, what is stored above it, and what is saved."""
    stored = min(cells, round(cells * measured.bits_per_weight / PLAIN_BITS))
    floor_cells = min(stored, round(cells * measured.entropy_bits_per_weight / PLAIN_BITS))
    return floor_cells, stored - floor_cells, cells - stored
