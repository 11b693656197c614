"""The group product kernel: fetchers first, then a program for every block of 8 rows.

As in `product_kernel` a lane serves one row and 32 columns of a step, weights become bytes and meet the
activation's digits in the integer tensor cores. Lane 4 g + c has the sum of digit c for row g. One group of
128 columns is one step, so each step's sum is scaled on its own.
"""

# Triton's tuples grow by `+` alone, and a constexpr `if` needs its `else`.
# ruff: noqa: RUF005, SIM102
# mypy: disable-error-code="assignment, misc"

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from kernels.gpu.chaining import follow
from kernels.gpu.dec.fetch_kernel import fetch_role
from kernels.gpu.ordered_loads import ordered_input4
from kernels.gpu.outputs import common_factor, norm_squares, outputs_before, row_sums, store_outputs
from kernels.gpu.registers import lane_words, step_registers
from kernels.gpu.tensor_cores import mma


@triton.jit
def _table(word: tl.tensor, BITS: tl.constexpr) -> Any:
    """A group's scale, and a quarter of what every weight of it has besides scale * code."""
    scale = (word << 16).to(tl.float32, bitcast=True)
    zero = (word & 0xFFFF0000).to(tl.float32, bitcast=True)
    return scale, (zero - scale * (1 << (BITS - 1))) * 0.25


@triton.jit
def _add_step(
    sums: tl.tensor,
    registers: tl.tensor,
    word: tl.tensor,
    digits: tl.tensor,
    group_sums: tl.tensor,
    powers: tl.tensor,
    stride: tl.tensor,
    BITS: tl.constexpr,
    BATCH: tl.constexpr,
    USED: tl.constexpr,
    ASM: tl.constexpr,
) -> Any:
    """Add one step to the float32 sums of all vectors; the four lanes of a row add a quarter of its zeros."""
    scale, offset = _table(word, BITS)
    r = registers
    zero = (word * 0).to(tl.int32)
    added = ()
    for m in tl.static_range(USED):
        b0, b1, b2, b3 = ordered_input4(digits + m * 128, ASM)
        c = mma(r[0], r[1], r[2], r[3], b0, b1, zero, zero, zero, zero, False, ASM)
        c = mma(r[4], r[5], r[6], r[7], b2, b3, c[0], c[1], c[2], c[3], False, ASM)
        dot = (c[0] * (1 << BITS) + c[3]).to(tl.float32)
        total = sums[m] + dot * (scale * powers[m])
        added = added + (total + offset * tl.load(group_sums + m * stride),)
    return added


@triton.jit
def _read(
    words: tl.tensor,
    tables: tl.tensor,
    at: tl.tensor,
    lane: tl.tensor,
    BITS: tl.constexpr,
    STEPS: tl.constexpr,
    ASM: tl.constexpr,
) -> Any:
    """The lane's words of a superstep of STEPS steps, and its table entries."""
    entries = ()
    for s in tl.static_range(STEPS):
        entries = entries + (tl.load(tables + at * 32 + s).to(tl.uint32, bitcast=True),)
    return lane_words(words + at * (BITS * 128), lane, STEPS * BITS, ASM), entries


@triton.jit
def _superstep(
    sums: tl.tensor,
    words: tl.tensor,
    entries: tl.tensor,
    step: tl.tensor,
    inputs: tl.tuple,
    lane: tl.tensor,
    BITS: tl.constexpr,
    BATCH: tl.constexpr,
    USED: tl.constexpr,
    STEPS: tl.constexpr,
    ASM: tl.constexpr,
) -> Any:
    """Add STEPS steps of one chunk, as `_read` gave them, that begin at `step`."""
    digits, group_sums, x_scale, stride, chunks = inputs
    # One part of odd registers is 2^BITS too large, and the other is made so.
    power = tl.exp2((8 * (lane % 4) - BITS).to(tl.float32))
    powers = ()
    for m in tl.static_range(USED):
        powers = powers + (power * tl.load(x_scale + m * chunks + step // 8),)
    for s in tl.static_range(STEPS):
        registers = step_registers(words, s * BITS, BITS)
        b = digits + (step + s) * (BATCH * 128) + lane * 4
        sums = _add_step(
            sums, registers, entries[s], b, group_sums + step + s, powers, stride, BITS, BATCH, USED, ASM
        )
    return sums


@triton.jit
def _block_sums(
    weights: tl.tuple,
    first: tl.tuple,
    inputs: tl.tuple,
    steps: tl.tensor,
    thread: tl.tensor,
    BITS: tl.constexpr,
    BATCH: tl.constexpr,
    USED: tl.constexpr,
    WHOLE: tl.constexpr,
    TAIL: tl.constexpr,
    WARPS: tl.constexpr,
    ASM: tl.constexpr,
) -> Any:
    """Per vector what each lane has of its row. Warps take turns at supersteps of four steps.

    A warp that has none left repeats the last one with the zeros that follow the last step's digits. `first`:
    each warp's first superstep as `_read` gives it, if there are WHOLE ones.
    """
    words, tables = weights
    lane = thread % 32
    warp = thread // 32
    whole = steps // 4
    sums = ((thread * 0).to(tl.float32),) * USED
    if WHOLE:
        step = tl.where(warp < whole, warp * 4, steps)
        sums = _superstep(sums, first[0], first[1], step, inputs, lane, BITS, BATCH, USED, 4, ASM)
        for turn in range(WARPS, whole, WARPS):
            at = tl.minimum(turn + warp, whole - 1)
            step = tl.where(turn + warp < whole, at * 4, steps)
            read, entries = _read(words, tables, at, lane, BITS, 4, ASM)
            sums = _superstep(sums, read, entries, step, inputs, lane, BITS, BATCH, USED, 4, ASM)
    if TAIL:
        for turn in range(whole * 4, steps, WARPS):
            at = tl.minimum(turn + warp, steps - 1)
            step = tl.where(turn + warp < steps, at, steps)
            read = lane_words(words + at * (BITS * 32), lane, BITS, ASM)
            entry = tl.load(tables + whole * 32 + at % 4).to(tl.uint32, bitcast=True)
            sums = _superstep(sums, read, (entry,), step, inputs, lane, BITS, BATCH, USED, 1, ASM)
    return sums


@triton.jit
def _block(
    weights: tl.tuple,
    inputs: tl.tuple,
    norm: tl.tuple,
    outputs: tl.tuple,
    block: tl.tensor,
    rows: tl.tensor,
    steps: tl.tensor,
    thread: tl.tensor,
    BITS: tl.constexpr,
    BATCH: tl.constexpr,
    USED: tl.constexpr,
    WHOLE: tl.constexpr,
    TAIL: tl.constexpr,
    NORMED: tl.constexpr,
    CHUNKS: tl.constexpr,
    ADD: tl.constexpr,
    BIAS: tl.constexpr,
    WARPS: tl.constexpr,
    CHAINED: tl.constexpr,
    ASM: tl.constexpr,
) -> None:
    """The product of one block of 8 rows with all vectors."""
    words, tables = weights
    out, bias = outputs
    squares, columns, eps = norm
    words += block.to(tl.int64) * (steps * (BITS * 32))
    tables += block.to(tl.int64) * ((steps + 3) // 4 * 32) + thread % 32 // 4 * 4
    first = ()
    if WHOLE:
        # Weights depend on nothing: they are on their way while the kernel before still runs.
        first = _read(words, tables, tl.minimum(thread // 32, steps // 4 - 1), thread % 32, BITS, 4, ASM)
    follow(CHAINED)
    row = block * 8 + tl.arange(0, 8)
    inside = row < rows
    before = ()
    common = ()
    for m in tl.static_range(USED):
        before = before + (outputs_before(out, bias, m * rows + row, row, inside, ADD, BIAS),)
        own = norm_squares(squares, m, inputs[4], NORMED, CHUNKS)
        common = common + (common_factor(own, columns, eps, NORMED),)
    sums = _block_sums(
        (words, tables), first, inputs, steps, thread, BITS, BATCH, USED, WHOLE, TAIL, WARPS, ASM
    )
    for m in tl.static_range(USED):
        value = row_sums(sums[m], WARPS) * common[m] + before[m]
        store_outputs(out, m * rows + row, value, inside, ASM)


# fmt: off
@triton.jit(do_not_specialize=(
    "rows", "steps", "stride", "chunks", "columns", "fetchers", "fetch_groups", "fetch_words",
    "fetch_columns",
))
def group_kernel(
    words: tl.tensor, tables: tl.tensor, digits: tl.tensor, group_sums: tl.tensor, x_scale: tl.tensor,
    squares: tl.tensor, out: tl.tensor, bias: tl.tensor, residual: tl.tensor, channels: tl.tensor,
    values: tl.tensor, control: tl.tensor, partial: tl.tensor, rows: tl.tensor, steps: tl.tensor,
    stride: tl.tensor, chunks: tl.tensor, columns: tl.tensor, eps: tl.tensor, fetchers: tl.tensor,
    fetch_groups: tl.tensor, fetch_words: tl.tensor, fetch_columns: tl.tensor, BITS: tl.constexpr,
    BATCH: tl.constexpr, USED: tl.constexpr, WHOLE: tl.constexpr, TAIL: tl.constexpr, NORMED: tl.constexpr,
    CHUNKS: tl.constexpr, ADD: tl.constexpr, BIAS: tl.constexpr, FETCH: tl.constexpr,
    FETCH_ROWS: tl.constexpr, FETCH_SPLITS: tl.constexpr, FETCH_AHEAD: tl.constexpr, WARPS: tl.constexpr,
    CHAINED: tl.constexpr, ASM: tl.constexpr,
) -> None:
    # fmt: on
    """out[m, row] = weight row . x_m; see `group_product.group_product`."""
    program = tl.program_id(0)
    thread = tl.arange(0, 32 * WARPS)
    if FETCH:
        if program < fetchers:
            follow(CHAINED)
            listing = (residual, channels, values, control, partial)
            shape = (fetch_groups, fetch_words, fetch_columns)
            fetch_role(listing, shape, program, thread, FETCH_ROWS, FETCH_SPLITS, FETCH_AHEAD, ASM)
    if program >= fetchers:
        _block(
            (words, tables), (digits, group_sums, x_scale, stride, chunks), (squares, columns, eps),
            (out, bias), program - fetchers, rows, steps, thread, BITS, BATCH, USED, WHOLE, TAIL, NORMED,
            CHUNKS, ADD, BIAS, WARPS, CHAINED, ASM,
        )  # fmt: skip
