"""The patched weights' part of a product: single columns of x, gathered in float32."""

# Triton's tuples grow by `+` alone.
# ruff: noqa: RUF005
# mypy: disable-error-code="assignment, misc"

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl


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
def patch_sums(
    begin: tl.tuple,
    columns: tl.tensor,
    deltas: tl.tensor,
    gathered: tl.tensor,
    lane: tl.tensor,
    warp: tl.tensor,
    BATCH: tl.constexpr,
    WARPS: tl.constexpr,
) -> Any:
    """Per vector the lane's share of the patches' part, float32.

    `begin`: the first round's column and delta, which are at hand, and the first and last round.
    """
    column, delta, first, last = begin
    sums = ((lane * 0).to(tl.float32),) * BATCH
    for base in range(first, last, WARPS):
        next_column, next_delta = patches(columns, deltas, base + WARPS, last, lane, warp)
        added = ()
        for m in tl.static_range(BATCH):
            added = added + (sums[m] + delta * tl.load(gathered + column * BATCH + m),)
        sums = added
        column = next_column
        delta = next_delta
    return sums
