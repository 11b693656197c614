"""Compiled loops that choose the widths of every group by exact size."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernels.int8x.adaptive_streams import GROUP_ROWS, SHORT_WIDTHS
from kernels.jit import njit

Choice = tuple[int, int, int, int]
_GROUP_ROWS, _SHORT_WIDTHS = GROUP_ROWS, SHORT_WIDTHS
_BYTE = np.uint64(255)


@njit
def magnitude_sums(q: np.ndarray, first: int, end: int, out: np.ndarray) -> None:
    """out[i] = sum of |q[i]| for rows first..end of q int8 [n_out, n_in]; out int64 [n_out]."""
    for i in range(first, end):
        row, total = q[i], np.int64(0)
        for j in range(row.size):
            total += abs(np.int64(row[j]))
        out[i] = total


@njit
def count_values(q: np.ndarray, rows: np.ndarray, tables: np.ndarray) -> None:
    """Add the values of some rows to tables int64 [4, 256], indexed by q mod 256.

    Four tables, for a counter that was just written cannot be read at once, and neighbours are often equal.
    """
    for r in range(rows.size):
        row = q[rows[r]]
        whole = row.size - row.size % 4
        for j in range(0, whole, 4):
            tables[0, np.uint64(row[j]) & _BYTE] += 1
            tables[1, np.uint64(row[j + 1]) & _BYTE] += 1
            tables[2, np.uint64(row[j + 2]) & _BYTE] += 1
            tables[3, np.uint64(row[j + 3]) & _BYTE] += 1
        for j in range(whole, row.size):
            tables[0, np.uint64(row[j]) & _BYTE] += 1


@njit
def smallest(counts: np.ndarray, positive: np.ndarray, negative: np.ndarray) -> Choice:
    """(b, e, short codes, bytes) of the smallest form of a group, whole words counted.

    counts int64 [256] over q mod 256; positive and negative int64 [129] are scratch: weights of 1..k and
    -k..-1. Of equal sizes the one with the widest plane and the narrowest short code, which decodes fastest.
    """
    n = counts.sum()
    positive[0] = negative[0] = 0
    for k in range(1, 129):
        positive[k] = positive[k - 1] + (counts[k] if k < 128 else 0)
        negative[k] = negative[k - 1] + counts[256 - k]
    best: Any = (8, 0, 0, 0)
    least = 32 * ((8 * n + 31) // 32)
    for width in range(7, 0, -1):
        m = (1 << (width - 1)) - 1
        escaped = n - counts[0] - positive[m] - negative[m]
        for e in _SHORT_WIDTHS:
            shorts, tails = 0, escaped
            if e:
                half = 1 << (e - 1)
                held = positive[m + half] - positive[m] + negative[m + half - 1] - negative[m]
                shorts, tails = escaped, escaped - held
            bits = 32 * ((width * n + 31) // 32) + 32 * ((e * shorts + 31) // 32) + 8 * tails
            if bits < least:
                least, best = bits, (width, e, shorts, tails)
    return best


@njit
def choose_groups(
    q: np.ndarray,
    order: np.ndarray,
    first: int,
    end: int,
    widths: np.ndarray,
    shorts: np.ndarray,
    tails: np.ndarray,
    total: np.ndarray,
) -> None:
    """Widths (b | e << 4) and counts of groups first..end; total int64 [256] receives their histogram."""
    tables = np.empty((4, 256), np.int64)
    counts = np.empty(256, np.int64)
    positive, negative = np.empty(129, np.int64), np.empty(129, np.int64)
    for group in range(first, end):
        tables[:] = 0
        count_values(q, order[group * _GROUP_ROWS : (group + 1) * _GROUP_ROWS], tables)
        for value in range(256):
            counts[value] = tables[0, value] + tables[1, value] + tables[2, value] + tables[3, value]
            total[value] += counts[value]
        width, e, shorts[group], tails[group] = smallest(counts, positive, negative)
        widths[group] = width | e << 4
