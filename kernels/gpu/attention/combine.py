"""Results of the programs that share a head, put together by the last of them."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

# Numbers of results that are read together.
_AT_ONCE = tl.constexpr(16384)


@triton.jit
def store_partial(
    buffers: tl.tuple,
    head: tl.tensor,
    split: tl.tensor,
    result: tl.tuple,
    ROWS: tl.constexpr,
    WIDTH: tl.constexpr,
    SPLITS: tl.constexpr,
) -> None:
    """Leave a program's result = (sums of values [16, WIDTH], largest scores [16], weights [16])."""
    partial, weights, _ = buffers
    sums, largest, total = result
    row = tl.arange(0, sums.shape[0])
    slot = head * SPLITS + split
    at = (slot * ROWS + row)[:, None] * WIDTH + tl.arange(0, WIDTH)[None, :]
    tl.store(partial + at, sums, mask=(row < ROWS)[:, None])
    tl.store(weights + slot * 2 * ROWS + row, largest, mask=row < ROWS)
    tl.store(weights + (slot * 2 + 1) * ROWS + row, total, mask=row < ROWS)


@triton.jit
def arrive(arrived: tl.tensor, active: tl.tensor) -> Any:
    """Whether this program is the last of `active`; if so it sees what the others stored, and the count is
    0 again for the next kernel.
    """
    # Every thread has stored before the one that counts does so.
    tl.debug_barrier()
    last = tl.atomic_add(arrived, 1, sem="acq_rel", scope="gpu") == active - 1
    tl.store(arrived, 0, mask=last)
    return last


@triton.jit
def _by_column(factors: tl.tensor, WIDTH: tl.constexpr) -> Any:
    """[n, ROWS] -> [n, ROWS * WIDTH], a row's factor for each of its columns."""
    COUNT: tl.constexpr = factors.shape[0]
    ROWS: tl.constexpr = factors.shape[1]
    return tl.reshape(tl.broadcast_to(factors[:, :, None], [COUNT, ROWS, WIDTH]), [COUNT, ROWS * WIDTH])


@triton.jit
def combined(
    buffers: tl.tuple,
    head: tl.tensor,
    active: tl.tensor,
    ROWS: tl.constexpr,
    WIDTH: tl.constexpr,
    SPLITS: tl.constexpr,
) -> Any:
    """[ROWS, WIDTH] of a head: the results of `active` programs, in a fixed order.

    Rows lie side by side, so that a thread has its columns of all programs and sums them up alone. What
    others stored is read from L2, where it is.
    """
    AT_ONCE: tl.constexpr = SPLITS if SPLITS * ROWS * WIDTH <= _AT_ONCE else _AT_ONCE // (ROWS * WIDTH)
    partial, weights, _ = buffers
    sums = tl.zeros([1, ROWS * WIDTH], tl.float32)
    total = tl.zeros([1, ROWS], tl.float32)
    top = tl.full([1, ROWS], float("-inf"), tl.float32)
    for first in range(0, active, AT_ONCE):
        split = first + tl.arange(0, AT_ONCE)[:, None]
        slot = head * SPLITS + split
        at = slot * (ROWS * WIDTH) + tl.arange(0, ROWS * WIDTH)[None, :]
        part = tl.load(partial + at, mask=split < active, other=0.0, cache_modifier=".cg")
        stats = weights + slot * (2 * ROWS) + tl.arange(0, ROWS)[None, :]
        largest = tl.load(stats, mask=split < active, other=float("-inf"), cache_modifier=".cg")
        weight = tl.load(stats + ROWS, mask=split < active, other=0.0, cache_modifier=".cg")
        higher = tl.maximum(top, tl.max(largest, 0)[None, :])
        fade, factor = tl.exp2(top - higher), tl.exp2(largest - higher)
        sums = sums * _by_column(fade, WIDTH) + tl.sum(part * _by_column(factor, WIDTH), 0)[None, :]
        total = total * fade + tl.sum(weight * factor, 0)[None, :]
        top = higher
    return tl.reshape(sums / _by_column(total, WIDTH), [ROWS, WIDTH])
