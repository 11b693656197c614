"""The table product's kernel: fetchers first, then a program for every group of 8 rows."""

# Triton's tuples grow by `+` alone, and a constexpr `if` must stand by itself.
# ruff: noqa: RUF005, SIM102
# mypy: disable-error-code="assignment, misc"

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from kernels.gpu.chaining import follow
from kernels.gpu.chunk_inputs import chunk_scale, digit_power, digit_sum
from kernels.gpu.dec.fetch_kernel import fetch_role
from kernels.gpu.lowbit.table_lookup import add_step, row_entries, selectors_of
from kernels.gpu.lowbit.tables import FACTORS, SUPERSTEP
from kernels.gpu.outputs import common_factor, norm_squares, outputs_before, row_sums, store_outputs
from kernels.gpu.registers import lane_words

_FACTOR3 = tl.constexpr(FACTORS[3])
_FACTOR4 = tl.constexpr(FACTORS[4])
_SUPERSTEP = tl.constexpr(SUPERSTEP)


@triton.jit
def _superstep(
    totals: tl.tuple,
    read: tl.tuple,
    row: tl.tuple,
    inputs: tl.tuple,
    step: tl.tensor,
    taken: tl.tensor,
    lane: tl.tensor,
    BITS: tl.constexpr,
    BATCH: tl.constexpr,
    USED: tl.constexpr,
    STEPS: tl.constexpr,
    ASM: tl.constexpr,
) -> Any:
    """Add STEPS steps from `step` on, whose words are `read`, to the float32 sums of all vectors, where
    `taken`. Of each lane's digit the sums of high and of low bytes are exact.
    """
    digits, digit_sums, x_scale, chunks = inputs
    entries, zero = row
    FACTOR: tl.constexpr = _FACTOR3 if BITS == 3 else _FACTOR4
    own = digits + step * (BATCH * 128) + lane * 4
    sums = (lane * 0,) * (8 * USED)
    for s in tl.static_range(STEPS):
        selectors = selectors_of(read, s * BITS, BITS)
        sums = add_step(sums, selectors, entries, own + s * (BATCH * 128), BITS, USED, ASM)
    added = ()
    for m in tl.static_range(USED):
        high = (sums[8 * m] + sums[8 * m + 3]).to(tl.float32)
        total = high * FACTOR + (sums[8 * m + 4] + sums[8 * m + 7]).to(tl.float32)
        if BITS == 4:
            total += zero * digit_sum(digit_sums + m * chunks * 32, step, lane, STEPS, ASM).to(tl.float32)
        scale = chunk_scale(x_scale + m * chunks, step, taken, 0, ASM)
        added = added + (totals[m] + total * scale,)
    return added


@triton.jit
def _sums(
    words: tl.tensor,
    first: tl.tuple,
    row: tl.tuple,
    inputs: tl.tuple,
    whole: tl.tensor,
    tail: tl.tensor,
    thread: tl.tensor,
    BITS: tl.constexpr,
    BATCH: tl.constexpr,
    USED: tl.constexpr,
    AHEAD: tl.constexpr,
    TAIL: tl.constexpr,
    WARPS: tl.constexpr,
    ASM: tl.constexpr,
) -> Any:
    """Per vector what each lane has of its row, in the row's steps.

    The warps take turns at supersteps; one that has none left repeats the last one for nothing. `first`: the
    words of each warp's first superstep, if they have been read AHEAD.
    """
    SUPERSTEP: tl.constexpr = _SUPERSTEP
    lane = thread % 32
    warp = thread // 32
    totals = ((lane * 0).to(tl.float32),) * USED
    if AHEAD:
        at = tl.minimum(warp, whole - 1) * SUPERSTEP
        totals = _superstep(
            totals, first, row, inputs, at, warp < whole, lane, BITS, BATCH, USED, SUPERSTEP, ASM
        )
    for turn in range(WARPS if AHEAD else 0, whole, WARPS):
        at = tl.minimum(turn + warp, whole - 1) * SUPERSTEP
        read = lane_words(words + at * (BITS * 32), lane, SUPERSTEP * BITS, ASM)
        taken = turn + warp < whole
        totals = _superstep(totals, read, row, inputs, at, taken, lane, BITS, BATCH, USED, SUPERSTEP, ASM)
    if TAIL:
        for turn in range(0, tail, WARPS):
            at = whole * SUPERSTEP + tl.minimum(turn + warp, tail - 1)
            read = lane_words(words + at * (BITS * 32), lane, BITS, ASM)
            taken = turn + warp < tail
            totals = _superstep(totals, read, row, inputs, at, taken, lane, BITS, BATCH, USED, 1, ASM)
    return totals


# fmt: off
@triton.jit
def _group(
    weights: tl.tuple, inputs: tl.tuple, norm: tl.tuple, outputs: tl.tuple, group: tl.tensor, rows: tl.tensor,
    whole: tl.tensor, tail: tl.tensor, thread: tl.tensor, BITS: tl.constexpr, BATCH: tl.constexpr,
    USED: tl.constexpr, WHOLE: tl.constexpr, TAIL: tl.constexpr, NORMED: tl.constexpr, CHUNKS: tl.constexpr,
    ADD: tl.constexpr, BIAS: tl.constexpr, WARPS: tl.constexpr, CHAINED: tl.constexpr, ASM: tl.constexpr,
) -> None:
    # fmt: on
    """The product of one group of 8 rows with all vectors."""
    words, entries, zero, step = weights
    squares, columns, eps = norm
    out, bias = outputs
    SUPERSTEP: tl.constexpr = _SUPERSTEP
    lane = thread % 32
    own = words + group.to(tl.int64) * ((whole * SUPERSTEP + tail) * (BITS * 32))
    # Weights depend on nothing: they are on their way while the kernel before still runs. For several vectors
    # the code of a superstep is long, and once is enough of it.
    AHEAD: tl.constexpr = WHOLE and USED == 1
    first = ()
    if AHEAD:
        at = tl.minimum(thread // 32, whole - 1) * (SUPERSTEP * BITS * 32)
        first = lane_words(own + at, lane, SUPERSTEP * BITS, ASM, True)
    lane_row = group * 8 + lane // 4
    table = row_entries(entries + lane_row * (1 << (BITS - 1)), BITS, ASM)
    lane_zero = tl.load(zero + lane_row, mask=lane_row < rows, other=0.0)
    row = group * 8 + tl.arange(0, 8)
    inside = row < rows
    row_step = tl.load(step + row, mask=inside, other=0.0)
    follow(CHAINED)
    # Loaded before the long part, needed after it: their latencies would follow one another there.
    before = ()
    squares_of = ()
    for m in tl.static_range(USED):
        before = before + (outputs_before(out, bias, m * rows + row, row, inside, ADD, BIAS),)
        squares_of = squares_of + (norm_squares(squares, m, inputs[3], NORMED, CHUNKS),)
    row_of_lane = (table, lane_zero)
    totals = _sums(
        own, first, row_of_lane, inputs, whole, tail, thread, BITS, BATCH, USED, AHEAD, TAIL, WARPS, ASM
    )
    for m in tl.static_range(USED):
        factor = row_step * common_factor(squares_of[m], columns, eps, NORMED)
        value = row_sums(totals[m] * digit_power(lane), WARPS) * factor
        store_outputs(out, m * rows + row, value + before[m], inside, ASM)


# fmt: off
@triton.jit(
    do_not_specialize=(
        "rows", "whole", "tail", "chunks", "columns", "fetchers", "fetch_groups", "fetch_words",
        "fetch_columns",
    )
)
def table_kernel(
    words: tl.tensor, entries: tl.tensor, zero: tl.tensor, step: tl.tensor, digits: tl.tensor,
    digit_sums: tl.tensor, x_scale: tl.tensor, squares: tl.tensor, out: tl.tensor, bias: tl.tensor,
    residual: tl.tensor, channels: tl.tensor, values: tl.tensor, control: tl.tensor, partial: tl.tensor,
    rows: tl.tensor, whole: tl.tensor, tail: tl.tensor, chunks: tl.tensor, columns: tl.tensor,
    eps: tl.tensor, fetchers: tl.tensor, fetch_groups: tl.tensor, fetch_words: tl.tensor,
    fetch_columns: tl.tensor, BITS: tl.constexpr, BATCH: tl.constexpr, USED: tl.constexpr,
    WHOLE: tl.constexpr, TAIL: tl.constexpr, NORMED: tl.constexpr, CHUNKS: tl.constexpr, ADD: tl.constexpr,
    BIAS: tl.constexpr, FETCH: tl.constexpr, FETCH_ROWS: tl.constexpr, FETCH_SPLITS: tl.constexpr,
    FETCH_AHEAD: tl.constexpr, WARPS: tl.constexpr, CHAINED: tl.constexpr, ASM: tl.constexpr,
) -> None:
    # fmt: on
    """out[m, row] = step * sum((number + zero) * x_m); see `table_product.table_product`."""
    program = tl.program_id(0)
    thread = tl.arange(0, 32 * WARPS)
    if FETCH:
        if program < fetchers:
            follow(CHAINED)
            listing = (residual, channels, values, control, partial)
            shape = (fetch_groups, fetch_words, fetch_columns)
            fetch_role(listing, shape, program, thread, FETCH_ROWS, FETCH_SPLITS, FETCH_AHEAD, ASM)
    if program >= fetchers:
        weights = (words, entries, zero, step)
        inputs = (digits, digit_sums, x_scale, chunks)
        norm = (squares, columns, eps)
        _group(
            weights, inputs, norm, (out, bias), program - fetchers, rows, whole, tail, thread,
            BITS, BATCH, USED, WHOLE, TAIL, NORMED, CHUNKS, ADD, BIAS, WARPS, CHAINED, ASM,
        )  # fmt: skip
