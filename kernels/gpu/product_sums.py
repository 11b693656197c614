"""The long part of the product: a group of 8 rows decoded and multiplied, superstep by superstep.

Lane 4 g + c has the sum of digit c for row g. In a superstep, which is part of one chunk, it is an exact
integer, less what the codes' zero point adds; then it is scaled as its chunk is, and added up in float32.
"""

# Triton's tuples grow by `+` alone, and a constexpr `if` must stand by itself.
# ruff: noqa: RUF005, SIM102
# mypy: disable-error-code="assignment, misc"

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from kernels.gpu.chaining import follow
from kernels.gpu.chunk_inputs import chunk_scale, digit_sum
from kernels.gpu.ordered_loads import ordered_input4
from kernels.gpu.outputs import norm_squares, outputs_before
from kernels.gpu.patches import column_values
from kernels.gpu.superstep import ESCAPED, LISTED, PLAIN, read_superstep, superstep_registers
from kernels.gpu.tensor_cores import mma

# Words of a superstep that a lane can have on their way while it waits for the kernel before.
_MOST_AHEAD = tl.constexpr(16)


@triton.jit
def _add_superstep(
    totals: tl.tuple,
    registers: tl.tuple,
    inputs: tl.tuple,
    step: tl.tensor,
    taken: tl.tensor,
    lane: tl.tensor,
    WIDTH: tl.constexpr,
    KIND: tl.constexpr,
    BATCH: tl.constexpr,
    USED: tl.constexpr,
    STEPS: tl.constexpr,
    ASM: tl.constexpr,
) -> Any:
    """Add STEPS steps from `step` on to the float32 sums of all vectors, where `taken`."""
    digits, digit_sums, x_scale, chunks = inputs
    SIGNED: tl.constexpr = KIND != PLAIN or WIDTH == 8
    # Odd registers of narrow plain planes come 2^WIDTH too large, and the even ones' sums are made so.
    SHIFT: tl.constexpr = WIDTH if WIDTH <= 4 and KIND == PLAIN else 0
    ZERO: tl.constexpr = 0 if WIDTH == 8 else (1 << (WIDTH - 1)) - (KIND == ESCAPED)
    own = digits + step * (BATCH * 128) + lane * 4
    sums = (lane * 0,) * (4 * USED)
    for s in tl.static_range(STEPS):
        r = registers[8 * s : 8 * s + 8]
        added = ()
        for m in tl.static_range(USED):
            b0, b1, b2, b3 = ordered_input4(own + (s * BATCH + m) * 128, ASM)
            c = sums[4 * m : 4 * m + 4]
            c = mma(r[0], r[1], r[2], r[3], b0, b1, c[0], c[1], c[2], c[3], SIGNED, ASM)
            added = added + mma(r[4], r[5], r[6], r[7], b2, b3, c[0], c[1], c[2], c[3], SIGNED, ASM)
        sums = added
    added = ()
    for m in tl.static_range(USED):
        dot = sums[4 * m] * (1 << SHIFT) + sums[4 * m + 3]
        if ZERO > 0:
            dot -= digit_sum(digit_sums + m * chunks * 32, step, lane, STEPS, ASM) * (ZERO << SHIFT)
        scale = chunk_scale(x_scale + m * chunks, step, taken, SHIFT, ASM)
        added = added + (totals[m] + dot.to(tl.float32) * scale,)
    return added


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
def _early_inputs(
    given: tl.tuple,
    BATCH: tl.constexpr,
    USED: tl.constexpr,
    NORMED: tl.constexpr,
    CHUNKS: tl.constexpr,
    ADD: tl.constexpr,
    BIAS: tl.constexpr,
    CHAINED: tl.constexpr,
    ASM: tl.constexpr,
) -> Any:
    """Waits for the kernels before; then of each vector what the end needs, and would wait for there.

    First the outputs' values before, then the norm's squares, then the first patches' inputs.
    """
    out, bias, row, rows, squares, chunks, gathered, column = given
    follow(CHAINED)
    before = ()
    sums = ()
    for m in tl.static_range(USED):
        before = before + (outputs_before(out, bias, m * rows + row, row, row < rows, ADD, BIAS),)
        sums = sums + (norm_squares(squares, m, chunks, NORMED, CHUNKS),)
    return before + sums + column_values(gathered, column, BATCH, USED, ASM)


# fmt: off
@triton.jit
def _group_sums(
    group: tl.tuple, inputs: tl.tuple, given: tl.tuple, early: tl.tuple, lane: tl.tensor, warp: tl.tensor,
    whole: tl.tensor, tail: tl.tensor, WIDTH: tl.constexpr, KIND: tl.constexpr, BATCH: tl.constexpr,
    USED: tl.constexpr, UNROLL: tl.constexpr, AHEAD: tl.constexpr, TAIL: tl.constexpr, NORMED: tl.constexpr,
    CHUNKS: tl.constexpr, ADD: tl.constexpr, BIAS: tl.constexpr, WARPS: tl.constexpr, CHAINED: tl.constexpr,
    ASM: tl.constexpr,
) -> Any:
    # fmt: on
    """Per vector the lane's share of sum(weight * x) over the planes, over what its digit counts; and what
    `_early_inputs` gives.

    The warps take turns at supersteps; one that has none left repeats the last one for nothing.
    """
    totals = ((lane * 0).to(tl.float32),) * USED
    start, end = _bounds(group[1], warp, whole + tail - 1, KIND)
    FEW: tl.constexpr = WIDTH * UNROLL <= _MOST_AHEAD
    for first in range(0, whole, WARPS):
        if AHEAD and not FEW:
            if first == 0:
                early = _early_inputs(given, BATCH, USED, NORMED, CHUNKS, ADD, BIAS, CHAINED, ASM)
        at = tl.minimum(first + warp, whole - 1)
        words = group[0] + at * (UNROLL * WIDTH * 32)
        read = read_superstep(words, group, start, end, lane, WIDTH, KIND, UNROLL, AHEAD and FEW, ASM)
        if AHEAD and FEW:
            if first == 0:
                early = _early_inputs(given, BATCH, USED, NORMED, CHUNKS, ADD, BIAS, CHAINED, ASM)
        later_start, later_end = _bounds(group[1], first + warp + WARPS, whole - 1, KIND)
        registers = superstep_registers(read, group, start, end, lane, WIDTH, KIND, UNROLL, ASM)
        taken = first + warp < whole
        totals = _add_superstep(
            totals, registers, inputs, at * UNROLL, taken, lane, WIDTH, KIND, BATCH, USED, UNROLL, ASM
        )
        start = later_start
        end = later_end
    if TAIL:
        for first in range(0, tail, WARPS):
            at = tl.minimum(first + warp, tail - 1)
            step = whole * UNROLL + at
            start, end = _bounds(group[1], whole + at, whole + tail - 1, KIND)
            words = group[0] + step * (WIDTH * 32)
            read = read_superstep(words, group, start, end, lane, WIDTH, KIND, 1, False, ASM)
            registers = superstep_registers(read, group, start, end, lane, WIDTH, KIND, 1, ASM)
            taken = first + warp < tail
            totals = _add_superstep(
                totals, registers, inputs, step, taken, lane, WIDTH, KIND, BATCH, USED, 1, ASM
            )
    return totals, early


# fmt: off
@triton.jit
def plane_sums(
    group: tl.tuple, width: tl.tensor, inputs: tl.tuple, given: tl.tuple, lane: tl.tensor, warp: tl.tensor,
    whole: tl.tensor, tail: tl.tensor, KINDS: tl.constexpr, BATCH: tl.constexpr, USED: tl.constexpr,
    UNROLL: tl.constexpr, WHOLE: tl.constexpr, TAIL: tl.constexpr, NORMED: tl.constexpr,
    CHUNKS: tl.constexpr, ADD: tl.constexpr, BIAS: tl.constexpr, WARPS: tl.constexpr, CHAINED: tl.constexpr,
    ASM: tl.constexpr,
) -> Any:
    # fmt: on
    """As `_group_sums`, in the form of the group; KINDS has a bit for each kind that occurs.

    `inputs`: digits, digit_sums, x_scale and chunks of a `Prepared`. `given`: what `_early_inputs` reads.
    """
    # Weights depend on nothing: of a single vector the first superstep's are read before the kernel before
    # has ended. For several, every form of a group would read too much of them in its own code.
    AHEAD: tl.constexpr = WHOLE and USED == 1
    totals = ((lane * 0).to(tl.float32),) * USED
    if AHEAD:
        early = (given[2].to(tl.float32), tl.zeros([CHUNKS], tl.float32), totals[0])
    else:
        early = _early_inputs(given, BATCH, USED, NORMED, CHUNKS, ADD, BIAS, CHAINED, ASM)
    for kind in tl.static_range(0, 3):
        if (KINDS >> kind) & 1:
            if group[5] == kind:
                for w in tl.static_range(2, 9 if kind == 0 else 7):
                    if width == w:
                        totals, early = _group_sums(
                            group, inputs, given, early, lane, warp, whole, tail, w, kind, BATCH, USED,
                            UNROLL, AHEAD, TAIL, NORMED, CHUNKS, ADD, BIAS, WARPS, CHAINED, ASM,
                        )  # fmt: skip
    return totals, early
