"""The group product kernel: fetchers first, then a program for every block of 8 rows.

As in `product_kernel` a lane serves one row and 32 columns of a step, weights become bytes and meet the
activation's digits in the integer tensor cores. Lane 4 g + c has the sum of digit c for row g. One group of
128 columns is one step, so each step's sum is scaled on its own.
"""

# Triton's tuples grow by `+` alone, and a constexpr `if` needs its `else`.
# ruff: noqa: RUF005
# mypy: disable-error-code="assignment, misc"

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from kernels.gpu.chaining import follow, prefetch_block
from kernels.gpu.dec.fetch_kernel import fetch_role
from kernels.gpu.outputs import outputs_before, store_outputs
from kernels.gpu.primitives import load_shared_input4
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
        b0, b1, b2, b3 = load_shared_input4(digits + m * 128, ASM)
        c = mma(r[0], r[1], r[2], r[3], b0, b1, zero, zero, zero, zero, False, ASM)
        c = mma(r[4], r[5], r[6], r[7], b2, b3, c[0], c[1], c[2], c[3], False, ASM)
        dot = (c[0] * (1 << BITS) + c[3]).to(tl.float32)
        total = sums[m] + dot * (scale * powers[m])
        added = added + (total + offset * tl.load(group_sums + m * stride),)
    return added


@triton.jit
def _superstep(
    sums: tl.tensor,
    at: tl.tensor,
    tables: tl.tensor,
    step: tl.tensor,
    inputs: tl.tuple,
    lane: tl.tensor,
    BITS: tl.constexpr,
    BATCH: tl.constexpr,
    USED: tl.constexpr,
    STEPS: tl.constexpr,
    ASM: tl.constexpr,
) -> Any:
    """Add STEPS steps; `at` points at their words, `tables` at the lane's first table entry."""
    digits, group_sums, powers, stride = inputs
    words = lane_words(at, lane, STEPS * BITS, ASM)
    entries = ()
    for s in tl.static_range(STEPS):
        entries = entries + (tl.load(tables + s).to(tl.uint32, bitcast=True),)
    for s in tl.static_range(STEPS):
        registers = step_registers(words, s * BITS, BITS)
        b = digits + (step + s) * (BATCH * 128) + lane * 4
        sums = _add_step(
            sums, registers, entries[s], b, group_sums + step + s, powers, stride, BITS, BATCH, USED, ASM
        )
    return sums


@triton.jit
def _block_sums(
    words: tl.tensor,
    tables: tl.tensor,
    inputs: tl.tuple,
    block: tl.tensor,
    steps: tl.tensor,
    thread: tl.tensor,
    BITS: tl.constexpr,
    BATCH: tl.constexpr,
    USED: tl.constexpr,
    TAIL: tl.constexpr,
    WARPS: tl.constexpr,
    ASM: tl.constexpr,
) -> Any:
    """Per vector what each lane has of its row. Warps take turns at supersteps of four steps.

    A warp that has none left repeats the last one with the zeros that follow the last step's digits.
    """
    lane = thread % 32
    warp = thread // 32
    whole = steps // 4
    words += block.to(tl.int64) * (steps * (BITS * 32))
    tables += block.to(tl.int64) * ((steps + 3) // 4 * 32) + lane // 4 * 4
    sums = ((thread * 0).to(tl.float32),) * USED
    for first in range(0, whole, WARPS):
        at = tl.minimum(first + warp, whole - 1)
        step = tl.where(first + warp < whole, at * 4, steps)
        line = words + at * (BITS * 128)
        sums = _superstep(sums, line, tables + at * 32, step, inputs, lane, BITS, BATCH, USED, 4, ASM)
    if TAIL:
        for first in range(whole * 4, steps, WARPS):
            at = tl.minimum(first + warp, steps - 1)
            step = tl.where(first + warp < steps, at, steps)
            line = words + at * (BITS * 32)
            entry = tables + whole * 32 + at % 4
            sums = _superstep(sums, line, entry, step, inputs, lane, BITS, BATCH, USED, 1, ASM)
    return sums


@triton.jit
def _block(
    weights: tl.tuple,
    inputs: tl.tuple,
    outputs: tl.tuple,
    block: tl.tensor,
    rows: tl.tensor,
    steps: tl.tensor,
    thread: tl.tensor,
    BITS: tl.constexpr,
    BATCH: tl.constexpr,
    USED: tl.constexpr,
    TAIL: tl.constexpr,
    ADD: tl.constexpr,
    BIAS: tl.constexpr,
    WARPS: tl.constexpr,
    ASM: tl.constexpr,
) -> None:
    """The product of one block of 8 rows with all vectors."""
    words, tables = weights
    out, bias = outputs
    row = block * 8 + tl.arange(0, 8)
    inside = row < rows
    before = ()
    for m in tl.static_range(USED):
        before = before + (outputs_before(out, bias, m * rows + row, row, inside, ADD, BIAS),)
    digits, group_sums, x_scale, stride = inputs
    # One part of odd registers is 2^BITS too large, and the other is made so.
    power = tl.exp2((8 * (thread % 4) - BITS).to(tl.float32))
    powers = ()
    for m in tl.static_range(USED):
        powers = powers + (power * tl.load(x_scale + m),)
    scaled = (digits, group_sums, powers, stride)
    sums = _block_sums(words, tables, scaled, block, steps, thread, BITS, BATCH, USED, TAIL, WARPS, ASM)
    for m in tl.static_range(USED):
        value = tl.sum(tl.sum(tl.reshape(sums[m], [WARPS, 8, 4]), 2), 0) + before[m]
        store_outputs(out, m * rows + row, value, inside, ASM)


@triton.jit(
    do_not_specialize=(
        "rows",
        "steps",
        "stride",
        "fetchers",
        "fetch_groups",
        "fetch_words",
        "fetch_columns",
    )
)
def group_kernel(
    words: tl.tensor,
    tables: tl.tensor,
    digits: tl.tensor,
    group_sums: tl.tensor,
    x_scale: tl.tensor,
    out: tl.tensor,
    bias: tl.tensor,
    residual: tl.tensor,
    channels: tl.tensor,
    values: tl.tensor,
    control: tl.tensor,
    partial: tl.tensor,
    rows: tl.tensor,
    steps: tl.tensor,
    stride: tl.tensor,
    fetchers: tl.tensor,
    fetch_groups: tl.tensor,
    fetch_words: tl.tensor,
    fetch_columns: tl.tensor,
    BITS: tl.constexpr,
    BATCH: tl.constexpr,
    USED: tl.constexpr,
    TAIL: tl.constexpr,
    ADD: tl.constexpr,
    BIAS: tl.constexpr,
    FETCH: tl.constexpr,
    FETCH_ROWS: tl.constexpr,
    FETCH_SPLITS: tl.constexpr,
    FETCH_AHEAD: tl.constexpr,
    AHEAD: tl.constexpr,
    WARPS: tl.constexpr,
    CHAINED: tl.constexpr,
    ASM: tl.constexpr,
) -> None:
    """out[m, row] = weight row . x_m; see `group_product.group_product`."""
    program = tl.program_id(0)
    thread = tl.arange(0, 32 * WARPS)
    if CHAINED and AHEAD > 0:
        prefetch_block(words, program - fetchers, steps * (BITS * 32), thread, AHEAD, ASM)
    follow(CHAINED)
    weights = (words, tables)
    outputs = (out, bias)
    inputs = (digits, group_sums, x_scale, stride)
    if FETCH:
        if program < fetchers:
            listing = (residual, channels, values, control, partial)
            shape = (fetch_groups, fetch_words, fetch_columns)
            fetch_role(listing, shape, program, thread, FETCH_ROWS, FETCH_SPLITS, FETCH_AHEAD, ASM)
        else:
            block = program - fetchers
            _block(
                weights, inputs, outputs, block, rows, steps, thread,
                BITS, BATCH, USED, TAIL, ADD, BIAS, WARPS, ASM,
            )  # fmt: skip
    else:
        _block(
            weights, inputs, outputs, program, rows, steps, thread,
            BITS, BATCH, USED, TAIL, ADD, BIAS, WARPS, ASM,
        )  # fmt: skip
