"""The product kernel: fetchers first, then a program for every group of 8 rows and up to 8 vectors."""

# Triton's tuples grow by `+` alone, and a constexpr `if` must stand by itself.
# ruff: noqa: SIM102
# mypy: disable-error-code="assignment, misc"

from __future__ import annotations

import triton
import triton.language as tl

from kernels.gpu.chaining import follow
from kernels.gpu.chunk_inputs import digit_power
from kernels.gpu.dec.fetch_kernel import fetch_role
from kernels.gpu.group import group_lines, group_rows
from kernels.gpu.outputs import common_factor, row_sums, store_outputs
from kernels.gpu.patches import patch_sums, patches
from kernels.gpu.product_sums import plane_sums
from kernels.gpu.saving import scratch


# fmt: off
@triton.jit
def _group(
    weights: tl.tuple, inputs: tl.tuple, norm: tl.tuple, gathered: tl.tensor, outputs: tl.tuple,
    number: tl.tensor, rows: tl.tensor, whole: tl.tensor, tail: tl.tensor, thread: tl.tensor,
    BATCH: tl.constexpr, USED: tl.constexpr, UNROLL: tl.constexpr, WHOLE: tl.constexpr, TAIL: tl.constexpr,
    KINDS: tl.constexpr, ROW_SCALES: tl.constexpr, NORMED: tl.constexpr, CHUNKS: tl.constexpr,
    SPACE: tl.constexpr, ADD: tl.constexpr, BIAS: tl.constexpr, WARPS: tl.constexpr, CHAINED: tl.constexpr,
    ASM: tl.constexpr,
) -> None:
    # fmt: on
    """The product of group `number` with all vectors."""
    planes, table, offsets, stream, patch_columns, patch_deltas, permutation, scale = weights
    squares, columns, eps = norm
    out, bias = outputs
    lane = thread % 32
    warp = thread // 32
    address = lane
    if KINDS > 1 and ASM:
        address = scratch(thread, SPACE)
    group, width, first_round, last_round = group_lines(planes, table, offsets, stream, address, number)
    # Weights, which depend on nothing: read while the kernel before still runs.
    column, delta = patches(patch_columns, patch_deltas, first_round, last_round, lane, warp)
    row = group_rows(permutation, number * 8 + tl.arange(0, 8))
    inside = row < rows
    row_scale = tl.load(scale + (row if ROW_SCALES else row * 0), mask=inside, other=0.0)
    given = (out, bias, row, rows, squares, inputs[3], gathered, column)
    totals, early = plane_sums(
        group, width, inputs, given, lane, warp, whole, tail, KINDS, BATCH, USED, UNROLL, WHOLE, TAIL,
        NORMED, CHUNKS, ADD, BIAS, WARPS, CHAINED, ASM,
    )  # fmt: skip
    begin = (delta, early[2 * USED : 3 * USED], first_round, last_round)
    sparse = patch_sums(begin, patch_columns, patch_deltas, gathered, lane, warp, BATCH, USED, WARPS, ASM)
    for m in tl.static_range(USED):
        factor = row_scale * common_factor(early[USED + m], columns, eps, NORMED)
        value = row_sums(totals[m] * digit_power(lane) + sparse[m], WARPS) * factor
        store_outputs(out, m * rows + row, value + early[m], inside, ASM)


# Integers of the shape stay arguments: a kernel for each divisibility would compile for seconds.
_SIZES = (
    "rows", "whole", "tail", "chunks", "columns", "fetchers", "fetch_groups", "fetch_words", "fetch_columns"
)  # fmt: skip


# fmt: off
@triton.jit(do_not_specialize=_SIZES)
def product_kernel(
    planes: tl.tensor, table: tl.tensor, offsets: tl.tensor, stream: tl.tensor, patch_columns: tl.tensor,
    patch_deltas: tl.tensor, permutation: tl.tensor, scale: tl.tensor, digits: tl.tensor,
    digit_sums: tl.tensor, gathered: tl.tensor, x_scale: tl.tensor, squares: tl.tensor, out: tl.tensor,
    bias: tl.tensor, residual: tl.tensor, channels: tl.tensor, values: tl.tensor, control: tl.tensor,
    partial: tl.tensor, rows: tl.tensor, whole: tl.tensor, tail: tl.tensor, chunks: tl.tensor,
    columns: tl.tensor, eps: tl.tensor, fetchers: tl.tensor, fetch_groups: tl.tensor, fetch_words: tl.tensor,
    fetch_columns: tl.tensor, BATCH: tl.constexpr, USED: tl.constexpr, UNROLL: tl.constexpr,
    WHOLE: tl.constexpr, TAIL: tl.constexpr, KINDS: tl.constexpr, ROW_SCALES: tl.constexpr,
    NORMED: tl.constexpr, CHUNKS: tl.constexpr, SPACE: tl.constexpr, ADD: tl.constexpr, BIAS: tl.constexpr,
    FETCH: tl.constexpr, FETCH_ROWS: tl.constexpr, FETCH_SPLITS: tl.constexpr, FETCH_AHEAD: tl.constexpr,
    WARPS: tl.constexpr, CHAINED: tl.constexpr, ASM: tl.constexpr,
) -> None:
    # fmt: on
    """out[m, row] = scale * sum(q * x_m): the widest groups first; see `product.product`."""
    program = tl.program_id(0)
    thread = tl.arange(0, 32 * WARPS)
    if FETCH:
        if program < fetchers:
            follow(CHAINED)
            listing = (residual, channels, values, control, partial)
            shape = (fetch_groups, fetch_words, fetch_columns)
            fetch_role(listing, shape, program, thread, FETCH_ROWS, FETCH_SPLITS, FETCH_AHEAD, ASM)
    if program >= fetchers:
        # Sorted rows: the last groups are the longest to compute, and started last they would end late.
        number = tl.num_programs(0) - 1 - program
        weights = (planes, table, offsets, stream, patch_columns, patch_deltas, permutation, scale)
        inputs = (digits, digit_sums, x_scale, chunks)
        norm = (squares, columns, eps)
        _group(
            weights, inputs, norm, gathered, (out, bias), number, rows, whole, tail, thread, BATCH, USED,
            UNROLL, WHOLE, TAIL, KINDS, ROW_SCALES, NORMED, CHUNKS, SPACE, ADD, BIAS, WARPS, CHAINED, ASM,
        )  # fmt: skip
