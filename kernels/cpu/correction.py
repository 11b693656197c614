"""DecDEC's correction of one linear for one token: bucket selection, gather, product.

Same rule as `kernels.dec.selection.bucket_mask`, bit for bit in what it selects; here in one compiled pass,
and a token with an input that is not finite is not corrected at all.
All layers of a kind lie in one stack and share their scratch: between two tokens the weights push everything
else out of the cache, and every further array a call touches would cost a trip to memory.
"""

from __future__ import annotations

import numpy as np

from kernels.cpu.scalars import from_bf16, prefetch
from kernels.jit import njit, njit_relaxed

U = np.uint64
LINE = U(64)
# Rows asked for before they are needed: enough to keep the memory busy, few enough to stay in the cache.
AHEAD = 12

HALF = 16
CHUNK = 1024
CODE_ZERO = 8
NOT_FINITE = -1
_LAST = np.float32(HALF - 1)
_ZERO = np.float32(0.0)
_LOW = np.uint8(15)
_SHIFT = np.uint8(4)


@njit
def correct(
    x: np.ndarray,
    layer: int,
    counts: np.ndarray,
    bounds: np.ndarray,
    codes: np.ndarray,
    scale: np.ndarray,
    buckets: np.ndarray,
    chosen: np.ndarray,
    out: np.ndarray,
) -> int:
    """out = scale * sum over selected channels of x[c] * residual[c]; returns how many were selected,
    or NOT_FINITE where an input is no finite number: such a token has no largest channels.

    x float32 [n_in]; counts int64 [layers, chunks]: channels to take of each 1024; bounds float32
    [layers, chunks, 2]: bk0 and bk15; codes uint8 [layers, n_in, ceil(n_out / 2)], see `pack_halves`;
    scale bfloat16 bits [layers, n_out]; buckets uint8 [n_in] and chosen int32 [n_in] are scratch; out float32
    [2 * ceil(n_out / 2)]. With nothing selected, out is left alone.
    """
    if not _is_finite(x):
        return NOT_FINITE
    total = 0
    for j in range(counts.shape[1]):
        if counts[layer, j] > 0:
            start = j * CHUNK
            stop = min(start + CHUNK, x.size)
            bucket(x, start, stop, bounds[layer, j, 0], bounds[layer, j, 1], buckets)
            total = choose(buckets, start, stop, counts[layer, j], chosen, total)
    if total > 0:
        half = codes.shape[2]
        at = layer * codes.shape[1] * half
        _accumulate(x, chosen, total, codes.reshape(-1), at, half, out)
        _rescale(x, chosen, total, scale.reshape(-1), layer * scale.shape[1], out)
    return total


@njit_relaxed
def _is_finite(x: np.ndarray) -> bool:
    """Whether all values are: zero times one that is not gives NaN, and the sum keeps it."""
    total = _ZERO
    for i in range(U(x.size)):
        total += x[i] * _ZERO
    return bool(total == _ZERO)


@njit
def bucket(
    x: np.ndarray, start: int, stop: int, top: np.float32, middle: np.float32, out: np.ndarray
) -> None:
    """Bucket 0 (largest) .. 31 of each magnitude, in the reference's float32 operations."""
    width = np.float32(top - middle)
    upper = np.float32(np.float32(HALF) / width) if width > _ZERO else _ZERO
    lower = np.float32(np.float32(HALF) / middle) if middle > _ZERO else _ZERO
    for i in range(np.uint64(start), np.uint64(stop)):
        magnitude = abs(x[i])
        high = np.float32(np.float32(top - magnitude) * upper)
        low = np.float32(np.float32(middle - magnitude) * lower)
        value = high if magnitude >= middle else low
        value = value if value > _ZERO else _ZERO
        value = value if value < _LAST else _LAST
        out[i] = np.uint8(np.int32(value) + (0 if magnitude >= middle else HALF))


@njit
def choose(buckets: np.ndarray, start: int, stop: int, k: int, chosen: np.ndarray, total: int) -> int:
    """Append k channel indices: whole buckets from the top, the last one filled by lowest index."""
    counts = np.zeros(2 * HALF, np.int32)
    for i in range(np.uint64(start), np.uint64(stop)):
        counts[buckets[i]] += 1
    taken, edge = 0, 0
    while taken + counts[edge] <= k and edge < 2 * HALF - 1:
        taken += counts[edge]
        edge += 1
    room = k - taken
    for i in range(np.uint64(start), np.uint64(stop)):
        if buckets[i] < edge:
            chosen[total] = i
            total += 1
        elif buckets[i] == edge and room > 0:
            chosen[total] = i
            total += 1
            room -= 1
    return total


@njit_relaxed
def _accumulate(
    x: np.ndarray,
    chosen: np.ndarray,
    total: int,
    codes: np.ndarray,
    at: int,
    half: int,
    out: np.ndarray,
) -> None:
    """out = sum of x[c] * stored code, rows of `half` bytes at codes[at + c * half], four at a time.

    Rows further on are asked for early.
    """
    n, start = U(half), U(at)
    for i in range(out.size):
        out[i] = _ZERO
    for j in range(min(AHEAD, total)):
        _prefetch_row(codes, start + U(chosen[j]) * n, n)
    for j in range(0, total, 4):
        for later in range(j + AHEAD, min(j + AHEAD + 4, total)):
            _prefetch_row(codes, start + U(chosen[later]) * n, n)
        # Beyond the last row the factor is 0 and the row any: one loop serves every count.
        b, c, d = min(j + 1, total - 1), min(j + 2, total - 1), min(j + 3, total - 1)
        xa = x[chosen[j]]
        xb = x[chosen[b]] if j + 1 < total else _ZERO
        xc = x[chosen[c]] if j + 2 < total else _ZERO
        xd = x[chosen[d]] if j + 3 < total else _ZERO
        ra, rb = start + U(chosen[j]) * n, start + U(chosen[b]) * n
        rc, rd = start + U(chosen[c]) * n, start + U(chosen[d]) * n
        for i in range(n):
            va, vb, vc, vd = codes[ra + i], codes[rb + i], codes[rc + i], codes[rd + i]
            out[i] += (
                xa * np.float32(np.int32(va & _LOW))
                + xb * np.float32(np.int32(vb & _LOW))
                + xc * np.float32(np.int32(vc & _LOW))
                + xd * np.float32(np.int32(vd & _LOW))
            )
            out[n + i] += (
                xa * np.float32(np.int32(va >> _SHIFT))
                + xb * np.float32(np.int32(vb >> _SHIFT))
                + xc * np.float32(np.int32(vc >> _SHIFT))
                + xd * np.float32(np.int32(vd >> _SHIFT))
            )


@njit_relaxed
def _rescale(
    x: np.ndarray, chosen: np.ndarray, total: int, scale: np.ndarray, at: int, out: np.ndarray
) -> None:
    """Take the codes' zero point of 8 off, once for all rows as 8 * sum of x, and apply the output scales."""
    offset = _ZERO
    for j in range(total):
        offset += x[chosen[j]]
    offset *= np.float32(CODE_ZERO)
    for i in range(U(min(out.size, scale.size - at))):
        out[i] = (out[i] - offset) * from_bf16(scale[U(at) + i])


@njit
def _prefetch_row(codes: np.ndarray, start: np.uint64, length: np.uint64) -> None:
    for i in range(U(0), length, LINE):
        prefetch(codes, start + i)
