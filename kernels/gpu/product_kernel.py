"""The product kernel: fetchers first, then a program for every group of 8 rows and up to 8 vectors."""

# Triton's tuples grow by `+` alone, and a constexpr `if` must stand by itself.
# ruff: noqa: RUF005, SIM102
# mypy: disable-error-code="assignment, misc"

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from kernels.gpu.chaining import follow
from kernels.gpu.dec.fetch_kernel import fetch_role
from kernels.gpu.group import group_lines, group_rows
from kernels.gpu.outputs import outputs_before, store_outputs
from kernels.gpu.patches import patch_sums, patches
from kernels.gpu.product_sums import plane_sums
from kernels.gpu.saving import scratch


# Integers of the shape stay arguments: a kernel for each divisibility would compile for seconds.
@triton.jit
def _inputs(
    digit_sums: tl.tensor,
    x_scale: tl.tensor,
    chunks: tl.tensor,
    digit: tl.tensor,
    USED: tl.constexpr,
    CHUNKS: tl.constexpr,
) -> Any:
    """Of every vector: sums of its digits [CHUNKS, 4], and its scale."""
    chunk = tl.arange(0, CHUNKS)[:, None]
    partial = ()
    scales = ()
    for m in tl.static_range(USED):
        sums_at = digit_sums + (m * chunks + chunk) * 4 + digit
        partial = partial + (tl.load(sums_at, mask=chunk < chunks, other=0),)
        scales = scales + (tl.load(x_scale + m),)
    return partial, scales


@triton.jit
def _dense(
    sums: tl.tensor,
    partial: tl.tensor,
    x_scale: tl.tensor,
    width: tl.tensor,
    mode: tl.tensor,
    digit: tl.tensor,
    WARPS: tl.constexpr,
) -> tl.tensor:
    """Dense part of 8 rows, float32: sums by digit, less what the codes' zero point adds, put together."""
    factor = tl.where((width <= 4) & (mode == 0), 1 << width, 1)
    zero = tl.where(width == 8, 0, (1 << (width - 1)) - (mode == 1).to(tl.int32))
    offset = tl.sum(partial, 0) * (factor * zero)
    dense = tl.sum(tl.reshape(sums, [WARPS, 8, 4]), 0) - offset[None, :]
    power = tl.exp2((8 * digit).to(tl.float32))
    return tl.sum(dense.to(tl.float32) * power, 1) * (x_scale / factor.to(tl.float32))


@triton.jit
def _group(
    weights: tl.tuple,
    inputs: tl.tuple,
    outputs: tl.tuple,
    number: tl.tensor,
    rows: tl.tensor,
    whole: tl.tensor,
    tail: tl.tensor,
    thread: tl.tensor,
    BATCH: tl.constexpr,
    USED: tl.constexpr,
    UNROLL: tl.constexpr,
    TAIL: tl.constexpr,
    KINDS: tl.constexpr,
    ROW_SCALES: tl.constexpr,
    CHUNKS: tl.constexpr,
    SPACE: tl.constexpr,
    ADD: tl.constexpr,
    BIAS: tl.constexpr,
    WARPS: tl.constexpr,
    ASM: tl.constexpr,
) -> None:
    """The product of group `number` with all vectors."""
    planes, table, offsets, stream, patch_columns, patch_deltas, permutation, scale = weights
    digits, digit_sums, gathered, x_scale, chunks = inputs
    out, bias = outputs
    lane = thread % 32
    warp = thread // 32
    address = lane
    if KINDS > 1 and ASM:
        address = scratch(thread, SPACE)
    group, width, first_round, last_round = group_lines(planes, table, offsets, stream, address, number)
    # Loaded before the long part, needed after it: their latencies would follow one another there.
    column, delta = patches(patch_columns, patch_deltas, first_round, last_round, lane, warp)
    row = group_rows(permutation, number * 8 + tl.arange(0, 8))
    inside = row < rows
    row_scale = tl.load(scale + (row if ROW_SCALES else row * 0), mask=inside, other=0.0)
    before = ()
    for m in tl.static_range(USED):
        before = before + (outputs_before(out, bias, m * rows + row, row, inside, ADD, BIAS),)
    digit = tl.arange(0, 4)[None, :]
    partial, x_scales = _inputs(digit_sums, x_scale, chunks, digit, USED, CHUNKS)
    sums = plane_sums(group, width, lane, warp, digits, whole, tail, KINDS, BATCH, UNROLL, TAIL, WARPS, ASM)
    begin = (column, delta, first_round, last_round)
    sparse = patch_sums(begin, patch_columns, patch_deltas, gathered, lane, warp, BATCH, WARPS)
    for m in tl.static_range(USED):
        value = _dense(sums[m], partial[m], x_scales[m], width, group[5], digit, WARPS)
        value += tl.sum(tl.sum(tl.reshape(sparse[m], [WARPS, 8, 4]), 2), 0)
        store_outputs(out, m * rows + row, value * row_scale + before[m], inside, ASM)


_SIZES = ("rows", "whole", "tail", "chunks", "fetchers", "fetch_groups", "fetch_words", "fetch_columns")


# fmt: off
@triton.jit(do_not_specialize=_SIZES)
def product_kernel(
    planes: tl.tensor, table: tl.tensor, offsets: tl.tensor, stream: tl.tensor, patch_columns: tl.tensor,
    patch_deltas: tl.tensor, permutation: tl.tensor, scale: tl.tensor, digits: tl.tensor,
    digit_sums: tl.tensor, gathered: tl.tensor, x_scale: tl.tensor, out: tl.tensor, bias: tl.tensor,
    residual: tl.tensor, channels: tl.tensor, values: tl.tensor, control: tl.tensor, partial: tl.tensor,
    rows: tl.tensor, whole: tl.tensor, tail: tl.tensor, chunks: tl.tensor, fetchers: tl.tensor,
    fetch_groups: tl.tensor, fetch_words: tl.tensor, fetch_columns: tl.tensor, BATCH: tl.constexpr,
    USED: tl.constexpr, UNROLL: tl.constexpr, TAIL: tl.constexpr, KINDS: tl.constexpr,
    ROW_SCALES: tl.constexpr, CHUNKS: tl.constexpr, SPACE: tl.constexpr, ADD: tl.constexpr,
    BIAS: tl.constexpr, FETCH: tl.constexpr, FETCH_ROWS: tl.constexpr, FETCH_SPLITS: tl.constexpr,
    FETCH_AHEAD: tl.constexpr, WARPS: tl.constexpr, CHAINED: tl.constexpr, ASM: tl.constexpr,
) -> None:
    # fmt: on
    """out[m, row] = scale * sum(q * x_m): the widest groups first; see `product.product`."""
    program = tl.program_id(0)
    thread = tl.arange(0, 32 * WARPS)
    follow(CHAINED)
    if FETCH:
        if program < fetchers:
            listing = (residual, channels, values, control, partial)
            shape = (fetch_groups, fetch_words, fetch_columns)
            fetch_role(listing, shape, program, thread, FETCH_ROWS, FETCH_SPLITS, FETCH_AHEAD, ASM)
    if program >= fetchers:
        # Sorted rows: the last groups are the longest to compute, and started last they would end late.
        number = tl.num_programs(0) - 1 - program
        weights = (planes, table, offsets, stream, patch_columns, patch_deltas, permutation, scale)
        inputs = (digits, digit_sums, gathered, x_scale, chunks)
        _group(
            weights, inputs, (out, bias), number, rows, whole, tail, thread,
            BATCH, USED, UNROLL, TAIL, KINDS, ROW_SCALES, CHUNKS, SPACE, ADD, BIAS, WARPS, ASM,
        )  # fmt: skip
