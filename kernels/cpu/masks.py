"""Channel selection of many tokens at once, for evaluations: the masks of `kernels.dec.selection`, compiled.

The same bits, at a tenth of the time; x and profile float32, in host memory, and finite.
"""

from __future__ import annotations

import numpy as np

from kernels.cpu.correction import bucket, choose
from kernels.dec.chunks import chunk_bounds, chunk_share
from kernels.jit import njit


def bucket_rows(x: np.ndarray, k_chunk: int, profile: np.ndarray) -> np.ndarray:
    """Boolean [tokens, n_in]: the paper's approximate top-k of x [tokens, n_in]; profile [n_in]."""
    mask = np.zeros(x.shape, np.bool_)
    for start, stop in chunk_bounds(x.shape[1]):
        k = chunk_share(k_chunk, stop - start)
        if k > 0:
            _bucket_rows(x, start, stop, k, profile[start], profile[start + k - 1], mask)
    return mask


def exact_rows(x: np.ndarray, k_chunk: int) -> np.ndarray:
    """Boolean [tokens, n_in]: the largest magnitudes of every chunk, of equal ones the first."""
    mask = np.zeros(x.shape, np.bool_)
    for start, stop in chunk_bounds(x.shape[1]):
        k = chunk_share(k_chunk, stop - start)
        if k > 0:
            magnitude = np.abs(x[:, start:stop])
            last = np.partition(magnitude, stop - start - k, axis=1)[:, stop - start - k]
            _largest(magnitude, last, k, mask[:, start:stop])
    return mask


@njit
def _bucket_rows(
    x: np.ndarray, start: int, stop: int, k: int, top: np.float32, middle: np.float32, mask: np.ndarray
) -> None:
    buckets, chosen = np.empty(x.shape[1], np.uint8), np.empty(k, np.int32)
    for t in range(x.shape[0]):
        bucket(x[t], start, stop, top, middle, buckets)
        for j in range(choose(buckets, start, stop, k, chosen, 0)):
            mask[t, chosen[j]] = True


@njit
def _largest(magnitude: np.ndarray, last: np.ndarray, k: int, mask: np.ndarray) -> None:
    """What is above a row's k-th magnitude, and of those equal to it the first that still fit."""
    for t in range(magnitude.shape[0]):
        room = k
        for i in range(magnitude.shape[1]):
            if magnitude[t, i] > last[t]:
                mask[t, i] = True
                room -= 1
        for i in range(magnitude.shape[1]):
            if room > 0 and magnitude[t, i] == last[t]:
                mask[t, i] = True
                room -= 1
