"""DecDEC's correction of one linear for one token: bucket selection, gather, product.

Same rule as `kernels.dec.selection.bucket_mask`, bit for bit in what it selects; here in one compiled pass.
"""

from __future__ import annotations

import numpy as np

from kernels.jit import njit, njit_relaxed

HALF = 16
_LAST = np.float32(HALF - 1)
_ZERO = np.float32(0.0)


@njit
def correct(
    x: np.ndarray,
    starts: np.ndarray,
    counts: np.ndarray,
    top: np.ndarray,
    middle: np.ndarray,
    codes: np.ndarray,
    scale: np.ndarray,
    buckets: np.ndarray,
    chosen: np.ndarray,
    out: np.ndarray,
) -> int:
    """out = scale * sum over selected channels of x[c] * codes[c]; returns how many were selected.

    x float32 [n_in]; chunk j spans starts[j]..starts[j + 1], gives counts[j] channels and has bucket bounds
    top[j] (bk0) and middle[j] (bk15); codes int8 [n_in, n_out], scale and out float32 [n_out];
    buckets uint8 [n_in] and chosen int32 [n_in] are scratch. All counts zero: out is left alone.
    """
    total = 0
    for j in range(counts.size):
        if counts[j] > 0:
            part = slice(starts[j], starts[j + 1])
            _bucket(x[part], top[j], middle[j], buckets[part])
            total = _choose(buckets[part], starts[j], counts[j], chosen, total)
    if total > 0:
        _accumulate(x, chosen[:total], codes, scale, out)
    return total


@njit
def _bucket(x: np.ndarray, top: np.float32, middle: np.float32, out: np.ndarray) -> None:
    """Bucket 0 (largest) .. 31 of each magnitude, in the reference's float32 operations."""
    width = np.float32(top - middle)
    upper = np.float32(np.float32(HALF) / width) if width > _ZERO else _ZERO
    lower = np.float32(np.float32(HALF) / middle) if middle > _ZERO else _ZERO
    for i in range(x.size):
        magnitude = abs(x[i])
        magnitude = magnitude if magnitude >= _ZERO else _ZERO
        high = np.float32(np.float32(top - magnitude) * upper)
        low = np.float32(np.float32(middle - magnitude) * lower)
        value = high if magnitude >= middle else low
        value = value if value > _ZERO else _ZERO
        value = value if value < _LAST else _LAST
        out[i] = np.uint8(np.int32(value) + (0 if magnitude >= middle else HALF))


@njit
def _choose(buckets: np.ndarray, start: int, k: int, chosen: np.ndarray, total: int) -> int:
    """Append k channel indices: whole buckets from the top, the last one filled by lowest index."""
    counts = np.zeros(2 * HALF, np.int32)
    for i in range(buckets.size):
        counts[buckets[i]] += 1
    taken, edge = 0, 0
    while taken + counts[edge] <= k and edge < 2 * HALF - 1:
        taken += counts[edge]
        edge += 1
    room = k - taken
    for i in range(buckets.size):
        bucket = buckets[i]
        if bucket < edge:
            chosen[total] = start + i
            total += 1
        elif bucket == edge and room > 0:
            chosen[total] = start + i
            total += 1
            room -= 1
    return total


@njit_relaxed
def _accumulate(
    x: np.ndarray, chosen: np.ndarray, codes: np.ndarray, scale: np.ndarray, out: np.ndarray
) -> None:
    """Four rows at a time, so that `out` is read and written a quarter as often."""
    out[:] = _ZERO
    whole = chosen.size - chosen.size % 4
    for j in range(0, whole, 4):
        a, b, c, d = chosen[j], chosen[j + 1], chosen[j + 2], chosen[j + 3]
        xa, xb, xc, xd = x[a], x[b], x[c], x[d]
        row_a, row_b, row_c, row_d = codes[a], codes[b], codes[c], codes[d]
        for i in range(out.size):
            out[i] += (
                xa * np.float32(row_a[i])
                + xb * np.float32(row_b[i])
                + xc * np.float32(row_c[i])
                + xd * np.float32(row_d[i])
            )
    for j in range(whole, chosen.size):
        value, row = x[chosen[j]], codes[chosen[j]]
        for i in range(out.size):
            out[i] += value * np.float32(row[i])
    for i in range(out.size):
        out[i] *= scale[i]
