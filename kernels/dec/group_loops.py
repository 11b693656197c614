"""Compiled loops over rows of group codes: range search, rounding with feedback, descent on codes."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernels.jit import njit_relaxed

_ZERO, _ONE = np.float32(0), np.float32(1)
_INFINITE = np.float32(np.inf)


@njit_relaxed
def best_ranges(
    rows: np.ndarray,
    importance: np.ndarray,
    group: int,
    shares: np.ndarray,
    top: np.float32,
    step: np.ndarray,
    lowest: np.ndarray,
) -> None:
    """step, lowest float32 [n, n_groups]: each group's best share of its range, codes lowest .. lowest + top.

    rows float32 [n, n_in]; importance float32 [n_in] weighs squared errors; shares float32 [candidates], of
    which ties take the first; lowest is a whole number of steps, so that one code means 0.
    """
    for r in range(rows.shape[0]):
        for number in range(step.shape[1]):
            part = slice(number * group, min((number + 1) * group, rows.shape[1]))
            row, weight = rows[r, part], importance[part]
            low, high = min(row.min(), _ZERO), max(row.max(), _ZERO)
            least = _INFINITE
            for share in shares:
                size: Any = (high - low) * share / top
                size = size if size > _ZERO else _ONE
                first: Any = np.rint(low * share / size)
                inverse, total = _ONE / size, _ZERO
                for i in range(row.size):
                    code = min(max(np.rint(row[i] * inverse), first), first + top)
                    error = code * size - row[i]
                    total += weight[i] * error * error
                if total < least:
                    least, step[r, number], lowest[r, number] = total, size, first


@njit_relaxed
def round_columns(
    rows: np.ndarray,
    fed: np.ndarray,
    lower: np.ndarray,
    groups: np.ndarray,
    scale: np.ndarray,
    zero: np.ndarray,
    half: np.float32,
    codes: np.ndarray,
    error: np.ndarray,
) -> None:
    """Round columns from the last to the first, each fed the errors of those after it.

    rows float32 [n, m]: the weights; fed float32 [n, m]: what errors in columns behind these add; lower
    float32 [m, m]: row j holds what an error in column i > j adds in column j; groups int64 [m]; scale, zero
    float32 [n, n_groups]; codes run from -half to half - 1 around zero. Writes codes uint8 [n, m] and error
    float32 [n, m], weights minus what the codes stand for.
    """
    width = rows.shape[1]
    for r in range(rows.shape[0]):
        lost = error[r]
        for j in range(width - 1, -1, -1):
            more, row = fed[r, j], lower[j]
            for i in range(j + 1, width):
                more += row[i] * lost[i]
            size, base = scale[r, groups[j]], zero[r, groups[j]]
            wanted: Any = np.rint((rows[r, j] + more - base) / size)
            code = min(max(wanted, -half), half - _ONE)
            codes[r, j] = np.uint8(code + half)
            lost[j] = rows[r, j] - (code * size + base)


@njit_relaxed
def descend(
    slope: np.ndarray, moment: np.ndarray, scale: np.ndarray, top: np.float32, codes: np.ndarray
) -> None:
    """One pass of coordinate descent on the codes of a group: each takes its best value given the others.

    slope float32 [n, m]: (weight - base) @ H in these columns, H over all columns; moment float32 [m, m]: H
    among these columns; scale float32 [n]. Updates codes uint8 [n, m] (0 .. top) and slope.
    """
    width = slope.shape[1]
    for r in range(slope.shape[0]):
        size, inner = scale[r], slope[r]
        for j in range(width):
            code = np.float32(codes[r, j])
            wanted: Any = np.rint(code + inner[j] / (moment[j, j] * size))
            best = min(max(wanted, _ZERO), top)
            if best != code:
                change, row = (code - best) * size, moment[j]
                codes[r, j] = np.uint8(best)
                for i in range(width):
                    inner[i] += change * row[i]
