"""The long part of the product: a group of 8 rows decoded and multiplied, superstep by superstep."""

# Triton's tuples grow by `+` alone, and a constexpr `if` must stand by itself.
# ruff: noqa: RUF005, SIM102
# mypy: disable-error-code="assignment, misc"

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from kernels.gpu.primitives import load_shared_input4
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
def plane_sums(
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
