"""Compiled loops of INT8 rounding."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernels.jit import njit

_LOW, _HIGH = np.float32(-127), np.float32(127)
_MAGNITUDE = np.uint32(0x7FFFFFFF)


@njit
def absmax_bits(rows: np.ndarray, out: np.ndarray) -> None:
    """Bits of the largest magnitude in each row, from float32 bits as uint32 [rows, n].

    Magnitudes order as integers do, infinities and NaN above all numbers, and integer maxima vectorise.
    """
    for i in range(rows.shape[0]):
        row, largest = rows[i], np.uint32(0)
        for j in range(row.size):
            largest = max(largest, row[j] & _MAGNITUDE)
        out[i] = largest


@njit
def round_rows(rows: np.ndarray, scale: np.ndarray, out: np.ndarray) -> None:
    """out = clamp(rint(rows / scale), -127, 127): halves to even, float32 [rows, n] to int8."""
    for i in range(rows.shape[0]):
        row, step, target = rows[i], scale[i], out[i]
        for j in range(row.size):
            value: Any = np.rint(row[j] / step)
            target[j] = np.int8(min(max(value, _LOW), _HIGH))


@njit
def round_scaled(rows: np.ndarray, scale: np.ndarray, columns: np.ndarray, out: np.ndarray) -> None:
    """out = clamp(rint(rows * columns / scale), -127, 127), each step rounded to float32."""
    for i in range(rows.shape[0]):
        row, step, target = rows[i], scale[i], out[i]
        for j in range(row.size):
            scaled: Any = row[j] * columns[j]
            value: Any = np.rint(scaled / step)
            target[j] = np.int8(min(max(value, _LOW), _HIGH))
