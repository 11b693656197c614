"""Grid search for the scale of each row that loses least when the row is rounded to a few levels."""

from __future__ import annotations

import numpy as np

from kernels.jit import njit_relaxed

_ZERO, _HALF, _ONE = np.float32(0.0), np.float32(0.5), np.float32(1.0)
_INFINITE = np.float32(np.inf)


@njit_relaxed
def best_scales(
    rows: np.ndarray, largest: np.ndarray, factors: np.ndarray, level: np.float32, out: np.ndarray
) -> None:
    """out[r] = the largest[r] * factor of least squared error of row r in codes -level..level.

    rows float32 [n, n_in]; largest, out float32 [n] (positive); factors float32 [candidates].
    """
    for r in range(rows.shape[0]):
        # Where errors overflow no candidate is better than another, and none would be written.
        row, lowest, out[r] = rows[r], _INFINITE, largest[r]
        for j in range(factors.size):
            scale = largest[r] * factors[j]
            inverse, total = _ONE / scale, _ZERO
            for i in range(row.size):
                code = min(max(np.floor(row[i] * inverse + _HALF), -level), level)
                error = code * scale - row[i]
                total += error * error
            if total < lowest:
                lowest = total
                out[r] = scale
