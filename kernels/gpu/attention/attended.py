"""Results of the programs that share a head, put together by the kernel that makes the next product's digits:
one kernel less has to wait for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import triton
import triton.language as tl
from torch import Tensor

from kernels.gpu.attention.decode_kernel import NO_WINDOW, share
from kernels.gpu.attention.scratch import AttentionScratch
from kernels.gpu.chaining import follow, launch_chained
from kernels.gpu.prepare import Prepared
from kernels.gpu.prepare_kernel import (
    CHUNK,
    chunk_extent,
    store_digits,
    store_group_sums,
    whole_numbers,
)

_WARPS = 8
# Results that are read together.
_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class Attended:
    """What `decode_attention` with `combine` False left: for the token at `position` (int32 [1]), `group`
    query heads of head_dim to each key and value head.
    """

    scratch: AttentionScratch
    position: Tensor
    window: int | None
    group: int
    head_dim: int

    @property
    def columns(self) -> int:
        """Values that they make."""
        return self.scratch.partial.shape[0] * self.group * self.head_dim


@triton.jit
def _attended(
    results: tl.tuple,
    column: tl.tensor,
    inside: tl.tensor,
    active: tl.tensor,
    GROUP: tl.constexpr,
    ROWS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    WIDTH: tl.constexpr,
    SPLITS: tl.constexpr,
    AT_ONCE: tl.constexpr,
) -> tl.tensor:
    """The attention's outputs `column`, the results of `active` programs in a fixed order."""
    partial, weights = results
    head = column // HEAD_DIM
    row = head % GROUP
    first_slot = head // GROUP * SPLITS
    sums = tl.zeros(column.shape, tl.float32)
    total = tl.zeros(column.shape, tl.float32)
    top = tl.full(column.shape, float("-inf"), tl.float32)
    for first in range(0, active, AT_ONCE):
        split = first + tl.arange(0, AT_ONCE)[:, None]
        slot = first_slot[None, :] + split
        there = (split < active) & inside[None, :]
        at = (slot * ROWS + row[None, :]) * WIDTH + (column % HEAD_DIM)[None, :]
        part = tl.load(partial + at, mask=there, other=0.0)
        stats = weights + slot * (2 * ROWS) + row[None, :]
        largest = tl.load(stats, mask=there, other=float("-inf"))
        weight = tl.load(stats + ROWS, mask=there, other=0.0)
        # Columns past the last have no result at all.
        higher = tl.where(inside, tl.maximum(top, tl.max(largest, 0)), 0.0)
        fade = tl.exp2(top - higher)
        factor = tl.exp2(largest - higher[None, :])
        sums = sums * fade + tl.sum(part * factor, 0)
        total = total * fade + tl.sum(weight * factor, 0)
        top = higher
    return tl.where(inside, sums / total, 0.0)


@triton.jit(do_not_specialize=("columns", "chunks", "window"))
def prepare_attended_kernel(
    partial: tl.tensor,
    weights: tl.tensor,
    position: tl.tensor,
    factors: tl.tensor,
    digits: tl.tensor,
    group_sums: tl.tensor,
    x_scale: tl.tensor,
    columns: tl.tensor,
    chunks: tl.tensor,
    window: tl.tensor,
    FACTORS: tl.constexpr,
    GROUP: tl.constexpr,
    ROWS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    WIDTH: tl.constexpr,
    SPLITS: tl.constexpr,
    SHARE: tl.constexpr,
    AT_ONCE: tl.constexpr,
    CHUNK: tl.constexpr,
    CHAINED: tl.constexpr,
    ASM: tl.constexpr,
) -> None:
    """Digits of chunk program_id(0); see `prepare_attended`."""
    chunk = tl.program_id(0)
    column = chunk * CHUNK + tl.arange(0, CHUNK)
    inside = column < columns
    factor = 1.0
    if FACTORS:
        factor = tl.load(factors + column, mask=inside, other=0.0)
    follow(CHAINED)
    _, _, active = share(tl.load(position), window, 0, SPLITS, SHARE)
    results = (partial, weights)
    value = _attended(results, column, inside, active, GROUP, ROWS, HEAD_DIM, WIDTH, SPLITS, AT_ONCE) * factor
    largest, poison = chunk_extent(value)
    number, scale = whole_numbers(value, largest)
    store_digits(number, digits, digits, chunk, 0, False, 1, ASM)
    store_group_sums(number, scale, group_sums + chunk * 8, ASM)
    tl.store(x_scale + chunk, scale + poison)


def prepare_attended(attended: Attended, out: Prepared, factors: Tensor | None = None) -> Prepared:
    """As `prepare`, by chunk, of an attention's outputs times `factors` float32 [columns], into `out`.

    ValueError when they do not fit.
    """
    scratch = attended.scratch
    if not out.by_chunk or (out.used, out.columns) != (1, attended.columns):
        raise ValueError(f"buffers for {out.used} x {out.columns} do not take {attended.columns} values")
    if factors is not None and factors.numel() != out.columns:
        raise ValueError(f"a factor of {factors.numel()} columns does not fit {out.columns}")
    launch_chained(
        prepare_attended_kernel,
        (out.chunks,),
        scratch.partial,
        scratch.weights,
        attended.position,
        out.x_scale if factors is None else factors,
        out.digits,
        out.group_sums,
        out.x_scale,
        out.columns,
        out.chunks,
        NO_WINDOW if attended.window is None else attended.window,
        FACTORS=factors is not None,
        GROUP=attended.group,
        ROWS=scratch.partial.shape[2],
        HEAD_DIM=attended.head_dim,
        WIDTH=scratch.partial.shape[3],
        SPLITS=scratch.splits,
        SHARE=scratch.share,
        AT_ONCE=min(_AT_ONCE, scratch.splits),
        CHUNK=CHUNK,
        num_warps=_WARPS,
    )
    return replace(out, eps=None)
