"""Sharpening of the logits that matter."""

from __future__ import annotations

import numpy as np

from kernels.jit import njit_relaxed

# bfloat16 keeps 8 bits: two logits closer than this share of the largest may have changed places.
RELATIVE_MARGIN = np.float32(1.0 / 64.0)


@njit_relaxed
def sharpen(x: np.ndarray, q: np.ndarray, scale: np.ndarray, logits: np.ndarray) -> int:
    """Recompute in float32 every logit near the largest; returns how many.

    x float32 [n_in]; q int8 [vocab, n_in]; scale, logits float32 [vocab], rounded to bf16.
    """
    top = np.float32(-np.inf)
    for i in range(logits.size):
        top = max(top, logits[i])
    floor = top - max(abs(top) * RELATIVE_MARGIN, np.float32(0.25))
    count = 0
    for i in range(logits.size):
        if logits[i] >= floor:
            row, total = q[i], np.float32(0.0)
            for j in range(x.size):
                total += x[j] * np.float32(row[j])
            logits[i] = total * scale[i]
            count += 1
    return count
