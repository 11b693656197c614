"""Rounding that knows what a code costs: escapes that pay too little are clipped to the plane.

A weight just beyond the plane's range takes a short code or a byte; rounding it to the range's end instead
saves those bits for a little more error. Entropy-coded quantisers gain by such a dead zone wherever the code
length jumps (rate-distortion optimised quantisation, as in video coding).
"""

from __future__ import annotations

import numpy as np
import torch

from kernels.int8x.adaptive import plan_adaptive
from kernels.int8x.adaptive_streams import GROUP_ROWS
from kernels.int8x.economical_loops import clip_rows
from kernels.int8x.pool import for_each
from kernels.int8x.quantise import quantise
from kernels.int8x.scales import Scales

# Squared error, in squared steps, that a saved bit may cost. At high rates ln(4) / 12 = 0.116 balances the
# two; on SmolLM2 at 3.3 to 5.5 bit/w values from 0.06 to 0.12 gave the same KL at equal size.
ERROR_PER_BIT = 0.08
ROUNDS = 2
ROWS_AT_ONCE = 64


def round_economically(
    weight: torch.Tensor, scales: Scales, error_per_bit: float = ERROR_PER_BIT, rounds: int = ROUNDS
) -> torch.Tensor:
    """A floating matrix [n_out, n_in] as int8: the nearest step, unless it is an escape that pays too little.

    The widths that adaptive planes would choose for the last round's integers set the prices. 0 error per
    bit is plain rounding. ValueError for NaN and infinities.
    """
    q = quantise(weight, scales)
    values = weight.detach().float().contiguous().numpy()
    row = scales.row_scale(len(q)).expand(len(q)).contiguous().numpy()
    columns = scales.column_scale()
    factors = np.ones(q.shape[1], np.float32) if columns is None else columns.numpy()
    for _ in range(rounds if error_per_bit > 0 else 0):
        q = _clip(values, row, factors, _row_widths(q), error_per_bit)
    return q


def _row_widths(q: torch.Tensor) -> np.ndarray:
    """Widths (b | e << 4) of the group each row falls into, uint8 [n_out]."""
    plan = plan_adaptive(q)
    widths = np.empty(q.shape[0], np.uint8)
    widths[plan.order] = np.repeat(plan.widths, GROUP_ROWS)[: q.shape[0]]
    return widths


def _clip(
    values: np.ndarray, row: np.ndarray, columns: np.ndarray, widths: np.ndarray, error_per_bit: float
) -> torch.Tensor:
    out = np.empty(values.shape, np.int8)

    def run(first: int) -> None:
        part = slice(first, first + ROWS_AT_ONCE)
        clip_rows(values[part], row[part], columns, widths[part], np.float32(error_per_bit), out[part])

    for_each(run, range(0, len(values), ROWS_AT_ONCE))
    return torch.from_numpy(out)
