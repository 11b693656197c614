"""The product kernel: a program decodes one group of 8 rows and multiplies it with up to 8 vectors of
digits.
"""

# Triton's tuples grow by `+` alone, and a constexpr `if` must stand by itself.
# ruff: noqa: RUF005, SIM102
# mypy: disable-error-code="assignment, misc"

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from kernels.gpu.conversions import as_type
from kernels.gpu.group import group_lines, group_rows
from kernels.gpu.patches import patch_sums, patches
from kernels.gpu.primitives import load_shared_input4
from kernels.gpu.saving import scratch
from kernels.gpu.superstep import LISTED, PLAIN, superstep_registers
from kernels.gpu.tensor_cores import mma


@triton.jit
def _accumulate(
    sums: tl.tensor,
    registers: tl.tensor,
    digits: tl.tensor,
    SIGNED: tl.constexpr,
    BATCH: tl.constexpr,
    STEPS: tl.constexpr,
    ASM: tl.constexpr,
) -> Any:
    """Add a superstep to the mma accumulators, four a vector; `digits` points at its first step's."""
    for s in tl.static_range(STEPS):
        r = registers[8 * s : 8 * s + 8]
        added = ()
        for m in tl.static_range(BATCH):
            b0, b1, b2, b3 = load_shared_input4(digits + (s * BATCH + m) * 128, ASM)
            c = sums[4 * m : 4 * m + 4]
            c = mma(r[0], r[1], r[2], r[3], b0, b1, c[0], c[1], c[2], c[3], SIGNED, ASM)
            added = added + mma(r[4], r[5], r[6], r[7], b2, b3, c[0], c[1], c[2], c[3], SIGNED, ASM)
        sums = added
    return sums


@triton.jit
def _bounds(starts: tl.tensor, at: tl.tensor, last: tl.tensor, KIND: tl.constexpr) -> Any:
    """Start and end of a superstep's part of the stream."""
    start = at * 0
    end = start
    if KIND != PLAIN:
        start = tl.load(starts + tl.minimum(at, last))
    if KIND == LISTED:
        end = tl.load(starts + tl.minimum(at, last) + 1)
    return start, end


@triton.jit
def _group_sums(
    group: tl.tensor,
    lane: tl.tensor,
    warp: tl.tensor,
    digits: tl.tensor,
    whole: tl.tensor,
    tail: tl.tensor,
    WIDTH: tl.constexpr,
    KIND: tl.constexpr,
    BATCH: tl.constexpr,
    UNROLL: tl.constexpr,
    TAIL: tl.constexpr,
    WARPS: tl.constexpr,
    ASM: tl.constexpr,
) -> Any:
    """Per vector the lane's share of 2^WIDTH (or 1) * sum(code * digit), digit number lane % 4: tuple of
    int32.

    The warps take turns at supersteps; one that has none left repeats the last one with digits of zero, which
    follow the digits of the last step.
    """
    SIGNED: tl.constexpr = KIND != PLAIN or WIDTH == 8
    STEP: tl.constexpr = BATCH * 128
    steps = whole * UNROLL + tail
    sums = (lane * 0,) * (4 * BATCH)
    start, end = _bounds(group[1], warp, whole + tail - 1, KIND)
    for first in range(0, whole, WARPS):
        at = tl.minimum(first + warp, whole - 1)
        step = tl.where(first + warp < whole, at * UNROLL, steps)
        later_start, later_end = _bounds(group[1], first + warp + WARPS, whole - 1, KIND)
        words = group[0] + at * (UNROLL * WIDTH * 32)
        registers = superstep_registers(words, group, start, end, lane, WIDTH, KIND, UNROLL, ASM)
        sums = _accumulate(sums, registers, digits + step * STEP + lane * 4, SIGNED, BATCH, UNROLL, ASM)
        start = later_start
        end = later_end
    if TAIL:
        for first in range(0, tail, WARPS):
            at = tl.minimum(first + warp, tail - 1)
            step = tl.where(first + warp < tail, whole * UNROLL + at, steps)
            start, end = _bounds(group[1], whole + at, whole + tail - 1, KIND)
            words = group[0] + (whole * UNROLL + at) * (WIDTH * 32)
            registers = superstep_registers(words, group, start, end, lane, WIDTH, KIND, 1, ASM)
            sums = _accumulate(sums, registers, digits + step * STEP + lane * 4, SIGNED, BATCH, 1, ASM)
    FACTOR: tl.constexpr = 1 << WIDTH if WIDTH <= 4 and KIND == PLAIN else 1
    combined = ()
    for m in tl.static_range(BATCH):
        combined = combined + (sums[4 * m] * FACTOR + sums[4 * m + 3],)
    return combined


@triton.jit
def _sums(
    group: tl.tensor,
    width: tl.tensor,
    lane: tl.tensor,
    warp: tl.tensor,
    digits: tl.tensor,
    whole: tl.tensor,
    tail: tl.tensor,
    KINDS: tl.constexpr,
    BATCH: tl.constexpr,
    UNROLL: tl.constexpr,
    TAIL: tl.constexpr,
    WARPS: tl.constexpr,
    ASM: tl.constexpr,
) -> Any:
    """As `_group_sums`, in the form of the group; KINDS has a bit for each kind that occurs."""
    sums = (lane * 0,) * BATCH
    for kind in tl.static_range(0, 3):
        if (KINDS >> kind) & 1:
            if group[5] == kind:
                for w in tl.static_range(2, 9 if kind == 0 else 7):
                    if width == w:
                        sums = _group_sums(
                            group, lane, warp, digits, whole, tail, w, kind, BATCH, UNROLL, TAIL, WARPS, ASM
                        )
    return sums


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


@triton.jit(do_not_specialize=("rows", "whole", "tail", "chunks"))
def product_kernel(
    planes: tl.tensor,
    table: tl.tensor,
    offsets: tl.tensor,
    stream: tl.tensor,
    patch_columns: tl.tensor,
    patch_deltas: tl.tensor,
    permutation: tl.tensor,
    scale: tl.tensor,
    digits: tl.tensor,
    digit_sums: tl.tensor,
    gathered: tl.tensor,
    x_scale: tl.tensor,
    out: tl.tensor,
    rows: tl.tensor,
    whole: tl.tensor,
    tail: tl.tensor,
    chunks: tl.tensor,
    BATCH: tl.constexpr,
    USED: tl.constexpr,
    UNROLL: tl.constexpr,
    TAIL: tl.constexpr,
    KINDS: tl.constexpr,
    ROW_SCALES: tl.constexpr,
    CHUNKS: tl.constexpr,
    SPACE: tl.constexpr,
    WARPS: tl.constexpr,
    ASM: tl.constexpr,
) -> None:
    """out[m, row] = scale * sum(q * x_m): the widest groups first; see `product.product`."""
    # Sorted rows: the last groups are the longest to compute, and started last they would end late.
    number = tl.num_programs(0) - 1 - tl.program_id(0)
    thread = tl.arange(0, 32 * WARPS)
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
    digit = tl.arange(0, 4)[None, :]
    partial, x_scales = _inputs(digit_sums, x_scale, chunks, digit, USED, CHUNKS)
    sums = _sums(group, width, lane, warp, digits, whole, tail, KINDS, BATCH, UNROLL, TAIL, WARPS, ASM)
    begin = (column, delta, first_round, last_round)
    sparse = patch_sums(begin, patch_columns, patch_deltas, gathered, lane, warp, BATCH, WARPS)
    for m in tl.static_range(USED):
        value = _dense(sums[m], partial[m], x_scales[m], width, group[5], digit, WARPS)
        value += tl.sum(tl.sum(tl.reshape(sparse[m], [WARPS, 8, 4]), 2), 0)
        tl.store(out + m * rows + row, as_type(value * row_scale, out.dtype.element_ty, ASM), mask=inside)
