"""Patched weights stored over what the planes gave."""

# mypy: disable-error-code="assignment, misc"

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from kernels.gpu.conversions import as_type


@triton.jit
def patch_round(patches: tl.tensor, base: tl.tensor, thread: tl.tensor) -> Any:
    """Column and delta of each thread in round `base` and its warp's number; zeros behind the last round.

    `patches` are columns, deltas, and the group's first round and the one behind its last.
    """
    columns, deltas, _, last = patches
    mine = base + thread // 32 < last
    entry = base * 32 + thread
    column = tl.load(columns + entry, mask=mine, other=0).to(tl.int32) & 0xFFFF
    return column, tl.load(deltas + entry, mask=mine, other=0).to(tl.int32)


@triton.jit
def extremes(group: tl.tensor, width: tl.tensor) -> Any:
    """Smallest and largest weight that needs no patch."""
    reach = tl.where(group[4] > 0, 1 << tl.maximum(group[4] - 1, 0), 0)
    highest = (1 << (width - 1)) - 1 + reach
    return (group[5] == 1).to(tl.int32) - highest - 1, highest


@triton.jit
def store_patches(
    out: tl.tensor,
    patch: tl.tensor,
    patches: tl.tensor,
    bounds: tl.tensor,
    scale: tl.tensor,
    thread: tl.tensor,
    begin: tl.tensor,
    end: tl.tensor,
    WARPS: tl.constexpr,
    BF16: tl.constexpr,
    ASM: tl.constexpr,
) -> None:
    """Store the patched weights of columns `begin` <= column < `end` over what the program's warps stored.

    `out` is column 0 of the thread's row, `patch` its patch of the first round, read well before. A patched
    weight is its delta beyond one of `bounds`, the `extremes`.
    """
    lowest, highest = bounds
    tl.debug_barrier()
    for base in range(patches[2] + WARPS, patches[3] + WARPS, WARPS):
        column, delta = patch
        inside = (delta != 0) & (column >= begin) & (column < end)
        value = tl.where(delta > 0, highest, lowest) + delta
        if BF16:
            tl.store(out + column, as_type(value.to(tl.float32) * scale, tl.bfloat16, ASM), mask=inside)
        else:
            tl.store(out + column, value.to(tl.int8), mask=inside)
        patch = patch_round(patches, base, thread)
