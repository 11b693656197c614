"""Which part of a panel a warp decodes, shared by the forms whose rows lie in blocks of 8."""

# mypy: disable-error-code="assignment, misc"

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

# Arguments that a decoding kernel is not compiled anew for.
SIZES = (
    "first_row",
    "last_row",
    "first_column",
    "last_column",
    "first_step",
    "count",
    "total",
    "steps",
    "stride",
)


@triton.jit
def panel_place(run: tl.tuple, thread: tl.tensor, STEPS: tl.constexpr, WARPS: tl.constexpr) -> Any:
    """Of each thread's warp: its block of 8 rows, its first step, and whether it has any.

    run = (first row of the panel, first step, supersteps of STEPS steps, those of all blocks together). A
    warp that has none left repeats the last one.
    """
    first_row, first_step, count, total = run
    place = tl.program_id(0) * WARPS + thread // 32
    at = tl.minimum(place, total - 1)
    return first_row // 8 + at // count, first_step + at % count * STEPS, place < total


@triton.jit
def lane_place(
    out: tl.tensor,
    limits: tl.tuple,
    stride: tl.tensor,
    block: tl.tensor,
    step: tl.tensor,
    lane: tl.tensor,
    alive: tl.tensor,
) -> Any:
    """Where the step's column 0 of the lane's row would lie, and the first and the end of its columns there.

    limits = (first row, end of rows, first column, end of columns) of the panel in the matrix.
    """
    first_row, last_row, first_column, last_column = limits
    row = block * 8 + lane // 4
    wanted = alive & (row >= first_row) & (row < last_row)
    target = out + (row - first_row).to(tl.int64) * stride + (step * 128 - first_column)
    left = tl.where(wanted, first_column, 1 << 30) - step * 128
    return target, left, last_column - step * 128
