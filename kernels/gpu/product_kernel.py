"""The product kernel: a program decodes one group of 8 rows and multiplies it with up to 8 vectors of digits."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from kernels.gpu.conversions import as_type
from kernels.gpu.escapes import scratch
from kernels.gpu.primitives import load_shared_input4
from kernels.gpu.superstep import superstep_registers
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
        added = ()
        for m in tl.static_range(BATCH):
            b0, b1, b2, b3 = load_shared_input4(digits + (s * BATCH + m) * 128, ASM)
            half = mma(
                registers[8 * s], registers[8 * s + 1], registers[8 * s + 2], registers[8 * s + 3],
                b0, b1, sums[4 * m], sums[4 * m + 1], sums[4 * m + 2], sums[4 * m + 3], SIGNED, ASM,
            )  # fmt: skip
            added = added + mma(
                registers[8 * s + 4], registers[8 * s + 5], registers[8 * s + 6], registers[8 * s + 7],
                b2, b3, half[0], half[1], half[2], half[3], SIGNED, ASM,
            )  # fmt: skip
        sums = added
    return sums


@triton.jit
def _group_sums(
    plane: tl.tensor,
    offsets: tl.tensor,
    stream: tl.tensor,
    digits: tl.tensor,
    address: tl.tensor,
    short_bits: tl.tensor,
    lane: tl.tensor,
    warp: tl.tensor,
    whole: tl.tensor,
    tail: tl.tensor,
    WIDTH: tl.constexpr,
    ESCAPED: tl.constexpr,
    BATCH: tl.constexpr,
    UNROLL: tl.constexpr,
    TAIL: tl.constexpr,
    WARPS: tl.constexpr,
    ASM: tl.constexpr,
) -> Any:
    """Per vector the lane's share of odd_factor * sum(code * digit), digit number lane % 4: tuple of int32.

    The warps take turns at supersteps; one that has none left repeats the last one with digits of zero, which
    follow the digits of the last step.
    """
    SIGNED: tl.constexpr = ESCAPED or WIDTH == 8
    steps = whole * UNROLL + tail
    sums = ()
    for _ in tl.static_range(4 * BATCH):
        sums = sums + (lane * 0,)
    bit = lane * 0
    if ESCAPED:
        bit = tl.load(offsets + tl.minimum(warp, whole + tail - 1))
    for first in range(0, whole, WARPS):
        at = tl.minimum(first + warp, whole - 1)
        step = tl.where(first + warp < whole, at * UNROLL, steps)
        next_bit = bit
        if ESCAPED:
            next_bit = tl.load(offsets + tl.minimum(first + warp + WARPS, whole - 1))
        registers = superstep_registers(
            plane + at * (UNROLL * WIDTH * 32),
            lane,
            stream,
            bit,
            short_bits,
            address,
            WIDTH,
            ESCAPED,
            UNROLL,
            ASM,
        )
        sums = _accumulate(
            sums, registers, digits + step * (BATCH * 128) + lane * 4, SIGNED, BATCH, UNROLL, ASM
        )
        bit = next_bit
    if TAIL:
        for first in range(0, tail, WARPS):
            at = tl.minimum(first + warp, tail - 1)
            step = tl.where(first + warp < tail, whole * UNROLL + at, steps)
            if ESCAPED:
                bit = tl.load(offsets + whole + at)
            registers = superstep_registers(
                plane + (whole * UNROLL + at) * (WIDTH * 32),
                lane,
                stream,
                bit,
                short_bits,
                address,
                WIDTH,
                ESCAPED,
                1,
                ASM,
            )
            sums = _accumulate(
                sums, registers, digits + step * (BATCH * 128) + lane * 4, SIGNED, BATCH, 1, ASM
            )
    FACTOR: tl.constexpr = 1 << WIDTH if WIDTH <= 4 and not ESCAPED else 1
    combined = ()
    for m in tl.static_range(BATCH):
        combined = combined + (sums[4 * m] * FACTOR + sums[4 * m + 3],)
    return combined


@triton.jit
def _patch_sums(
    columns: tl.tensor,
    deltas: tl.tensor,
    gathered: tl.tensor,
    first: tl.tensor,
    last: tl.tensor,
    lane: tl.tensor,
    warp: tl.tensor,
    BATCH: tl.constexpr,
    WARPS: tl.constexpr,
) -> Any:
    """Per vector the lane's share of the patches' part, float32."""
    sums = ()
    for _ in tl.static_range(BATCH):
        sums = sums + ((lane * 0).to(tl.float32),)
    for base in range(first, last, WARPS):
        mine = base + warp < last
        entry = (base + warp) * 32 + lane
        column = tl.load(columns + entry, mask=mine, other=0).to(tl.int32) & 0xFFFF
        delta = tl.load(deltas + entry, mask=mine, other=0).to(tl.float32)
        added = ()
        for m in tl.static_range(BATCH):
            added = added + (sums[m] + delta * tl.load(gathered + column * BATCH + m),)
        sums = added
    return sums


# Integers of the shape stay arguments: a kernel for each divisibility would compile for seconds.
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
    ESCAPES: tl.constexpr,
    ROW_SCALES: tl.constexpr,
    CHUNKS: tl.constexpr,
    SPACE: tl.constexpr,
    WARPS: tl.constexpr,
    ASM: tl.constexpr,
) -> None:
    """out[m, row] = scale * sum(q * x_m): group number = program number; see `product.product`."""
    thread = tl.arange(0, 32 * WARPS)
    lane = thread % 32
    warp = thread // 32
    group = tl.program_id(0)
    entry = table + group * 4
    plane = planes + tl.load(entry).to(tl.int64) * 32
    key = tl.load(entry + 1)
    width = key & 15
    short_bits = key >> 4
    starts = offsets + tl.load(entry + 3)
    address = lane
    if ESCAPES and ASM:
        address = scratch(thread, SPACE)
    escaped = short_bits > 0
    factor = tl.where((width <= 4) & (short_bits == 0), 1 << width, 1)
    zero = tl.where(width == 8, 0, (1 << (width - 1)) - escaped.to(tl.int32))
    if escaped:
        sums = _escaped_sums(
            ESCAPES,
            plane,
            starts,
            stream,
            digits,
            address,
            short_bits,
            width,
            lane,
            warp,
            whole,
            tail,
            BATCH,
            UNROLL,
            TAIL,
            WARPS,
            ASM,
        )
    else:
        sums = _plain_sums(
            plane,
            starts,
            stream,
            digits,
            address,
            short_bits,
            width,
            lane,
            warp,
            whole,
            tail,
            BATCH,
            UNROLL,
            TAIL,
            WARPS,
            ASM,
        )
    sparse = _patch_sums(
        patch_columns,
        patch_deltas,
        gathered,
        tl.load(entry + 2),
        tl.load(entry + 6),
        lane,
        warp,
        BATCH,
        WARPS,
    )
    row = tl.load(permutation + group * 8 + tl.arange(0, 8)).to(tl.int32)
    if permutation.dtype.element_ty == tl.int16:
        row = row & 0xFFFF
    inside = row < rows
    row_scale = tl.load(scale + (row if ROW_SCALES else row * 0), mask=inside, other=0.0)
    digit = tl.arange(0, 4)
    chunk = tl.arange(0, CHUNKS)
    power = tl.exp2((8 * digit).to(tl.float32))[None, :]
    for m in tl.static_range(USED):
        partial = tl.load(
            digit_sums + (m * chunks + chunk)[:, None] * 4 + digit[None, :],
            mask=(chunk < chunks)[:, None],
            other=0,
        )
        offset = tl.sum(partial, 0) * (factor * zero)
        dense = tl.sum(tl.reshape(sums[m], [WARPS, 8, 4]), 0) - offset[None, :]
        value = tl.sum(dense.to(tl.float32) * power, 1) * (tl.load(x_scale + m) / factor.to(tl.float32))
        value += tl.sum(tl.sum(tl.reshape(sparse[m], [WARPS, 8, 4]), 2), 0)
        tl.store(out + m * rows + row, as_type(value * row_scale, out.dtype.element_ty, ASM), mask=inside)


@triton.jit
def _plain_sums(
    plane: tl.tensor,
    starts: tl.tensor,
    stream: tl.tensor,
    digits: tl.tensor,
    address: tl.tensor,
    short_bits: tl.tensor,
    width: tl.tensor,
    lane: tl.tensor,
    warp: tl.tensor,
    whole: tl.tensor,
    tail: tl.tensor,
    BATCH: tl.constexpr,
    UNROLL: tl.constexpr,
    TAIL: tl.constexpr,
    WARPS: tl.constexpr,
    ASM: tl.constexpr,
) -> Any:
    if width == 2:
        sums = _group_sums(
            plane,
            starts,
            stream,
            digits,
            address,
            short_bits,
            lane,
            warp,
            whole,
            tail,
            2,
            False,
            BATCH,
            UNROLL,
            TAIL,
            WARPS,
            ASM,
        )
    elif width == 3:
        sums = _group_sums(
            plane,
            starts,
            stream,
            digits,
            address,
            short_bits,
            lane,
            warp,
            whole,
            tail,
            3,
            False,
            BATCH,
            UNROLL,
            TAIL,
            WARPS,
            ASM,
        )
    elif width == 4:
        sums = _group_sums(
            plane,
            starts,
            stream,
            digits,
            address,
            short_bits,
            lane,
            warp,
            whole,
            tail,
            4,
            False,
            BATCH,
            UNROLL,
            TAIL,
            WARPS,
            ASM,
        )
    elif width == 5:
        sums = _group_sums(
            plane,
            starts,
            stream,
            digits,
            address,
            short_bits,
            lane,
            warp,
            whole,
            tail,
            5,
            False,
            BATCH,
            UNROLL,
            TAIL,
            WARPS,
            ASM,
        )
    elif width == 6:
        sums = _group_sums(
            plane,
            starts,
            stream,
            digits,
            address,
            short_bits,
            lane,
            warp,
            whole,
            tail,
            6,
            False,
            BATCH,
            UNROLL,
            TAIL,
            WARPS,
            ASM,
        )
    elif width == 7:
        sums = _group_sums(
            plane,
            starts,
            stream,
            digits,
            address,
            short_bits,
            lane,
            warp,
            whole,
            tail,
            7,
            False,
            BATCH,
            UNROLL,
            TAIL,
            WARPS,
            ASM,
        )
    else:
        sums = _group_sums(
            plane,
            starts,
            stream,
            digits,
            address,
            short_bits,
            lane,
            warp,
            whole,
            tail,
            8,
            False,
            BATCH,
            UNROLL,
            TAIL,
            WARPS,
            ASM,
        )
    return sums


@triton.jit
def _escaped_sums(
    ESCAPES: tl.constexpr,
    plane: tl.tensor,
    starts: tl.tensor,
    stream: tl.tensor,
    digits: tl.tensor,
    address: tl.tensor,
    short_bits: tl.tensor,
    width: tl.tensor,
    lane: tl.tensor,
    warp: tl.tensor,
    whole: tl.tensor,
    tail: tl.tensor,
    BATCH: tl.constexpr,
    UNROLL: tl.constexpr,
    TAIL: tl.constexpr,
    WARPS: tl.constexpr,
    ASM: tl.constexpr,
) -> Any:
    if ESCAPES:
        if width == 2:
            sums = _group_sums(
                plane,
                starts,
                stream,
                digits,
                address,
                short_bits,
                lane,
                warp,
                whole,
                tail,
                2,
                True,
                BATCH,
                UNROLL,
                TAIL,
                WARPS,
                ASM,
            )
        elif width == 3:
            sums = _group_sums(
                plane,
                starts,
                stream,
                digits,
                address,
                short_bits,
                lane,
                warp,
                whole,
                tail,
                3,
                True,
                BATCH,
                UNROLL,
                TAIL,
                WARPS,
                ASM,
            )
        elif width == 4:
            sums = _group_sums(
                plane,
                starts,
                stream,
                digits,
                address,
                short_bits,
                lane,
                warp,
                whole,
                tail,
                4,
                True,
                BATCH,
                UNROLL,
                TAIL,
                WARPS,
                ASM,
            )
        elif width == 5:
            sums = _group_sums(
                plane,
                starts,
                stream,
                digits,
                address,
                short_bits,
                lane,
                warp,
                whole,
                tail,
                5,
                True,
                BATCH,
                UNROLL,
                TAIL,
                WARPS,
                ASM,
            )
        else:
            sums = _group_sums(
                plane,
                starts,
                stream,
                digits,
                address,
                short_bits,
                lane,
                warp,
                whole,
                tail,
                6,
                True,
                BATCH,
                UNROLL,
                TAIL,
                WARPS,
                ASM,
            )
    else:
        sums = ()
        for _ in tl.static_range(BATCH):
            sums = sums + (lane * 0,)
    return sums
