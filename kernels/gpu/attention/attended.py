"""Results of the programs that share a head, put together by the kernel that makes the next product's digits:
one kernel less has to wait for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import triton
import triton.language as tl
from torch import Tensor

from kernels.gpu.attention.decode_kernel import NO_WINDOW, share
from kernels.gpu.attention.scratch import AttentionScratch
from kernels.gpu.chaining import follow, launch_chained
from kernels.gpu.digits import CHUNK, Extras, chunk_extent, store_chunk, whole_numbers
from kernels.gpu.prepare import Prepared

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


@triton.jit
def attended_chunk(
    sources: tl.tuple,
    targets: tl.tuple,
    sizes: tl.tuple,
    chunk: tl.tensor,
    FACTORS: tl.constexpr,
    EXTRAS: tl.constexpr,
    GROUP: tl.constexpr,
    ROWS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    WIDTH: tl.constexpr,
    SPLITS: tl.constexpr,
    SHARE: tl.constexpr,
    AT_ONCE: tl.constexpr,
    CHUNK: tl.constexpr,
    ASM: tl.constexpr,
) -> None:
    """Digits of a chunk: sources = (partial, weights, factors, position), targets as of `prepare_kernel`,
    sizes = (columns, chunks, window).
    """
    partial, weights, factors, position = sources
    columns, chunks, window = sizes
    column = chunk * CHUNK + tl.arange(0, CHUNK)
    inside = column < columns
    _, _, active = share(tl.load(position), window, 0, SPLITS, SHARE)
    results = (partial, weights)
    value = _attended(results, column, inside, active, GROUP, ROWS, HEAD_DIM, WIDTH, SPLITS, AT_ONCE)
    if FACTORS:
        value *= tl.load(factors + column, mask=inside, other=0.0)
    largest, poison = chunk_extent(value)
    number, scale = whole_numbers(value, largest)
    store_chunk(number, scale, targets[:4], chunk, 0, chunks, EXTRAS, True, 1, ASM)
    tl.store(targets[4] + chunk, scale + poison)


# fmt: off
@triton.jit(do_not_specialize=("columns", "chunks", "window"))
def prepare_attended_kernel(
    partial: tl.tensor, weights: tl.tensor, position: tl.tensor, factors: tl.tensor, digits: tl.tensor,
    digit_sums: tl.tensor, group_sums: tl.tensor, gathered: tl.tensor, x_scale: tl.tensor,
    columns: tl.tensor, chunks: tl.tensor, window: tl.tensor, FACTORS: tl.constexpr, EXTRAS: tl.constexpr,
    GROUP: tl.constexpr, HEAD_ROWS: tl.constexpr, HEAD_DIM: tl.constexpr, WIDTH: tl.constexpr,
    ATTENDED_SPLITS: tl.constexpr, SHARE: tl.constexpr, AT_ONCE: tl.constexpr, CHUNK: tl.constexpr,
    CHAINED: tl.constexpr, ASM: tl.constexpr,
) -> None:
    # fmt: on
    """Digits of chunk program_id(0); see `prepare_attended`."""
    follow(CHAINED)
    sources = (partial, weights, factors, position)
    targets = (digits, digit_sums, group_sums, gathered, x_scale)
    attended_chunk(
        sources, targets, (columns, chunks, window), tl.program_id(0), FACTORS, EXTRAS, GROUP, HEAD_ROWS,
        HEAD_DIM, WIDTH, ATTENDED_SPLITS, SHARE, AT_ONCE, CHUNK, ASM,
    )  # fmt: skip


def head_constants(attended: Attended | None) -> dict[str, Any]:
    """The constexpr arguments that say how heads and results lie; of no attention all are 1."""
    if attended is None:
        return dict.fromkeys(("GROUP", "HEAD_ROWS", "HEAD_DIM", "WIDTH", "ATTENDED_SPLITS", "SHARE"), 1)
    scratch = attended.scratch
    return {
        "GROUP": attended.group,
        "HEAD_ROWS": scratch.partial.shape[2],
        "HEAD_DIM": attended.head_dim,
        "WIDTH": scratch.partial.shape[3],
        "ATTENDED_SPLITS": scratch.splits,
        "SHARE": scratch.share,
    }


def prepare_attended(
    attended: Attended, out: Prepared, factors: Tensor | None = None, extras: Extras = Extras.ALL
) -> Prepared:
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
        out.digit_sums,
        out.group_sums,
        out.gathered,
        out.x_scale,
        out.columns,
        out.chunks,
        NO_WINDOW if attended.window is None else attended.window,
        FACTORS=factors is not None,
        EXTRAS=int(extras),
        **head_constants(attended),
        AT_ONCE=min(_AT_ONCE, scratch.splits),
        CHUNK=CHUNK,
        num_warps=_WARPS,
    )
    return replace(out, extras=extras, eps=None)
