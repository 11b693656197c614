"""The patched weights' part of a product: single columns of x, gathered in float32."""

# Triton's tuples grow by `+` alone.
# ruff: noqa: RUF005
# mypy: disable-error-code="assignment, misc"

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from kernels.gpu.chunk_inputs import input_float


@triton.jit
def patches(
    columns: tl.tensor, deltas: tl.tensor, first: tl.tensor, last: tl.tensor, lane: tl.tensor, warp: tl.tensor
) -> Any:
    """Column and delta of the warp's patches of round `first` + warp; zeros from round `last` on."""
    mine = first + warp < last
    entry = (first + warp) * 32 + lane
    column = tl.load(columns + entry, mask=mine, other=0).to(tl.int32) & 0xFFFF
    return column, tl.load(deltas + entry, mask=mine, other=0).to(tl.float32)


@triton.jit
def column_values(
    gathered: tl.tensor, column: tl.tensor, BATCH: tl.constexpr, USED: tl.constexpr, ASM: tl.constexpr
) -> Any:
    """Of each vector the values at the lanes' columns."""
    values = ()
    for m in tl.static_range(USED):
        values = values + (input_float(gathered + column * BATCH + m, ASM),)
    return values


@triton.jit
def patch_sums(
    begin: tl.tuple,
    columns: tl.tensor,
    deltas: tl.tensor,
    gathered: tl.tensor,
    lane: tl.tensor,
    warp: tl.tensor,
    BATCH: tl.constexpr,
    USED: tl.constexpr,
    WARPS: tl.constexpr,
    ASM: tl.constexpr,
) -> Any:
    """Per vector the lane's share of the patches' part, float32.

    `begin`: the first round's deltas and the values at its columns, which are at hand, and the group's first
    and last round.
    """
    delta, values, first, last = begin
    sums = ()
    for m in tl.static_range(USED):
        sums = sums + (delta * values[m],)
    column, delta = patches(columns, deltas, first + WARPS, last, lane, warp)
    for base in range(first + WARPS, last, WARPS):
        next_column, next_delta = patches(columns, deltas, base + WARPS, last, lane, warp)
        values = column_values(gathered, column, BATCH, USED, ASM)
        added = ()
        for m in tl.static_range(USED):
            added = added + (sums[m] + delta * values[m],)
        sums = added
        column = next_column
        delta = next_delta
    return sums
