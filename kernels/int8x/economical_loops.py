"""Compiled loops of rounding that knows what a code costs."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernels.jit import njit, njit_inline

_TOP = np.float32(127)
_BYTE_BITS = np.float32(8)


@njit_inline
def _cheaper(size: Any, kept: Any, end: Any, allowed: Any) -> bool:
    """Whether moving |v| from `kept` to `end` adds at most `allowed` squared error."""
    return (size - end) * (size - end) - (size - kept) * (size - kept) <= allowed


@njit
def clip_rows(
    values: np.ndarray,
    row: np.ndarray,
    columns: np.ndarray,
    widths: np.ndarray,
    error_per_bit: np.float32,
    out: np.ndarray,
) -> None:
    """out int8 [rows, n] from values float32 [rows, n], steps [rows], column factors [n], widths [rows]."""
    for i in range(values.shape[0]):
        source, step, target = values[i], row[i], out[i]
        b, e = np.int64(widths[i]) & 15, np.int64(widths[i]) >> 4
        limit = np.float32((1 << (b - 1)) - 1) if b < 8 else _TOP
        half = np.float32(1 << (e - 1)) if e else np.float32(0)
        short = np.float32(e) if e else _BYTE_BITS
        for j in range(source.size):
            scaled: Any = source[j] * columns[j]
            v: Any = scaled / step
            size, sign = abs(v), np.float32(1) if v > 0 else np.float32(-1)
            kept: Any = min(np.rint(size), _TOP)
            if kept > limit:
                # Negative weights have one short code less: it announces the byte.
                reach = limit + half - (np.float32(0) if v > 0 else np.float32(1))
                beyond = kept > reach and e > 0
                price = short + _BYTE_BITS if beyond else short
                if _cheaper(size, kept, limit, price * error_per_bit):
                    kept = limit
                elif beyond and reach > limit and _cheaper(size, kept, reach, _BYTE_BITS * error_per_bit):
                    kept = reach
            target[j] = np.int8(kept * sign)
