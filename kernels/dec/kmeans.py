"""Weighted k-means of every row of a matrix, as SqueezeLLM quantises weights (Kim et al. 2024).

In one dimension the best clusters are found by dynamic programming. It runs on a few hundred runs of sorted
neighbours, and Lloyd's rounds settle the borders between single values: within a few hundredths of a percent
of the exact optimum, at a cost that hardly grows with the row. Libraries are slower or further off: kmeans1d
takes no weights, flash1dkmeans starts at random and ends 2 to 11 % above the optimum.
"""

from __future__ import annotations

import numpy as np
import torch

from kernels.dec import kmeans_loops as loops
from kernels.dec.limits import require_sound
from kernels.dec.table import TableCodes
from kernels.dec.table_steps import in_whole_steps
from kernels.int8x.pool import for_tiles

# Runs per entry of the table: more cost time and gain less than 0.1 %.
POINTS_PER_ENTRY = 16
# Added to weights, as a share of their row's mean: a value that nothing depends on still has a cluster.
FLOOR = 1e-4


def cluster_rows(values: torch.Tensor, weights: torch.Tensor, k: int) -> torch.Tensor:
    """Centres float32 [n_out, k], ascending, of rows of values [n_out, n_in] with weights of that shape.

    Weights are not negative; a row whose weights are all zero has equal ones. Rows of fewer than k values
    repeat some. ValueError for values and weights that are not finite.
    """
    require_sound(values)
    if not bool((torch.isfinite(weights) & (weights >= 0)).all()):
        raise ValueError("values and weights must be finite, weights not negative")
    x, w = values.float().contiguous().numpy(), weights.float().contiguous().numpy()
    centres = np.empty((x.shape[0], k))

    def run(first: int, end: int) -> None:
        part = x[first:end]
        loops.cluster_rows(
            part, _positive(w[first:end]), part.argsort(1), k * POINTS_PER_ENTRY, centres[first:end]
        )

    for_tiles(len(x), x.shape[1], run)
    return torch.from_numpy(centres).float()


def nearest_codes(values: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    """Codes uint8 [n_out, n_in] of the nearest entry in the row's ascending table float32 [n_out, k]."""
    x, entries = values.float().contiguous().numpy(), table.contiguous().numpy()
    codes = np.empty(x.shape, np.uint8)

    def run(first: int, end: int) -> None:
        loops.nearest_codes(x[first:end], entries[first:end], codes[first:end])

    for_tiles(len(x), x.shape[1], run)
    return torch.from_numpy(codes)


def quantise_table(weight: torch.Tensor, importance: torch.Tensor, bits: int) -> TableCodes:
    """Weight [n_out, n_in] by tables that lose least of sum(importance * error^2), row by row.

    importance: [n_out, n_in], or [n_in] where it is the same for all rows. Entries are rounded to bfloat16
    and whole steps (products are then exact) before codes are chosen. ValueError for values that are not
    finite.
    """
    centres = cluster_rows(weight, importance.expand(weight.shape), 2**bits)
    table = in_whole_steps(centres.bfloat16().float())
    return TableCodes(bits, nearest_codes(weight, table), table)


def _positive(weights: np.ndarray) -> np.ndarray:
    mean = weights.mean(1, keepdims=True)
    floor = np.where(mean > 0, mean * np.float32(FLOOR), np.float32(1))
    return np.maximum(weights, floor)
