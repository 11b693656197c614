"""Decoding packed weights to int8 or bf16: planes and escapes first, the patched weights over them."""

# A return under a constexpr `if` needs its `else`: triton would compile what follows it as well.
# ruff: noqa: RET505

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from kernels.gpu.conversions import as_type, bf16_bits
from kernels.gpu.escapes import scratch
from kernels.gpu.primitives import store_words4
from kernels.gpu.superstep import superstep_registers


@triton.jit
def _interleave(even: tl.tensor, odd: tl.tensor, ASM: tl.constexpr) -> Any:
    """Bytes e0 o0 e1 o1 and e2 o2 e3 o3 as two words."""
    if ASM:
        return tl.inline_asm_elementwise(
            "prmt.b32 $0,$2,$3,0x5140; prmt.b32 $1,$2,$3,0x7362;",
            "=&r,=r,r,r",
            [even, odd],
            dtype=(tl.uint32, tl.uint32),
            is_pure=True,
            pack=1,
        )
    else:
        low = (even & 0xFF) | ((odd & 0xFF) << 8) | ((even & 0xFF00) << 8) | ((odd & 0xFF00) << 16)
        even = even >> 16
        odd = odd >> 16
        return low, (even & 0xFF) | ((odd & 0xFF) << 8) | ((even & 0xFF00) << 8) | ((odd & 0xFF00) << 16)


@triton.jit
def _column_words(
    registers: tl.tensor,
    FIRST: tl.constexpr,
    offset: tl.tensor,
    WIDTH: tl.constexpr,
    ESCAPED: tl.constexpr,
    ASM: tl.constexpr,
) -> Any:
    """Int8 weights of a lane's 32 columns of a step, in column order: tuple of 8 words."""
    words = ()
    for j in tl.static_range(4):
        even = registers[FIRST + 2 * j]
        odd = registers[FIRST + 2 * j + 1]
        if WIDTH <= 4 and not ESCAPED:
            odd = odd >> WIDTH
        words = words + _interleave(_minus(even, offset), _minus(odd, offset), ASM)
    return words


@triton.jit
def _minus(word: tl.tensor, offset: tl.tensor) -> Any:
    """Bytes of `word` minus `offset` (0 to 127 in every byte), modulo 256."""
    return ((word | 0x80808080) - offset) ^ ((word ^ 0xFFFFFFFF) & 0x80808080)


@triton.jit
def _weight(word: tl.tensor, BYTE: tl.constexpr, scale: tl.tensor, ASM: tl.constexpr) -> Any:
    """The signed byte times `scale`, rounded once: bits of bf16 as uint16."""
    value = ((word.to(tl.int32, bitcast=True) << (24 - 8 * BYTE)) >> 24).to(tl.float32) * scale
    return bf16_bits(value, ASM)


@triton.jit
def _store_bytes(
    out: tl.tensor,
    words: tl.tensor,
    scale: tl.tensor,
    left: tl.tensor,
    right: tl.tensor,
    BF16: tl.constexpr,
    ASM: tl.constexpr,
) -> None:
    """One weight at a time, for rows that are no multiple of 16 bytes; columns `left` <= column < `right` of 32."""
    for column in tl.static_range(32):
        inside = (left <= column) & (column < right)
        if BF16:
            bits = _weight(words[column // 4], column % 4, scale, ASM)
            tl.store(out + column, bits.to(tl.bfloat16, bitcast=True), mask=inside)
        else:
            byte = (words[column // 4] >> (8 * (column % 4))) & 0xFF
            tl.store(out + column, byte.to(tl.uint8).to(tl.int8, bitcast=True), mask=inside)


@triton.jit
def _store_vectors(
    out: tl.tensor,
    words: tl.tensor,
    scale: tl.tensor,
    left: tl.tensor,
    right: tl.tensor,
    BF16: tl.constexpr,
    ASM: tl.constexpr,
) -> None:
    """As `_store_bytes`, 16 bytes at a time; `out` is int32."""
    if BF16:
        for part in tl.static_range(4):
            pairs = ()
            for half in tl.static_range(4):
                word = words[2 * part + half // 2]
                low = _weight(word, 2 * (half % 2), scale, ASM).to(tl.uint32)
                pairs = pairs + (low | (_weight(word, 2 * (half % 2) + 1, scale, ASM).to(tl.uint32) << 16),)
            inside = ((left <= 8 * part) & (8 * part + 8 <= right)).to(tl.int32)
            store_words4(out + 4 * part, pairs[0], pairs[1], pairs[2], pairs[3], inside, ASM)
    else:
        for part in tl.static_range(2):
            inside = ((left <= 16 * part) & (16 * part + 16 <= right)).to(tl.int32)
            w = (words[4 * part], words[4 * part + 1], words[4 * part + 2], words[4 * part + 3])
            store_words4(out + 4 * part, w[0], w[1], w[2], w[3], inside, ASM)


@triton.jit
def _decoded(
    plane: tl.tensor,
    starts: tl.tensor,
    stream: tl.tensor,
    short_bits: tl.tensor,
    address: tl.tensor,
    lane: tl.tensor,
    step: tl.tensor,
    entry: tl.tensor,
    offset: tl.tensor,
    WIDTH: tl.constexpr,
    ESCAPED: tl.constexpr,
    STEPS: tl.constexpr,
    ASM: tl.constexpr,
) -> Any:
    """Weights of the lane's 32 columns of each of STEPS steps from `step` on: tuple of 8 * STEPS words."""
    bit = lane * 0
    if ESCAPED:
        bit = tl.load(starts + entry)
    registers = superstep_registers(
        plane + step * (WIDTH * 32), lane, stream, bit, short_bits, address, WIDTH, ESCAPED, STEPS, ASM
    )
    words = ()
    for s in tl.static_range(STEPS):
        words = words + _column_words(registers, 8 * s, offset, WIDTH, ESCAPED, ASM)
    return words


@triton.jit
def _decoded_group(
    plane: tl.tensor,
    starts: tl.tensor,
    stream: tl.tensor,
    width: tl.tensor,
    short_bits: tl.tensor,
    address: tl.tensor,
    lane: tl.tensor,
    step: tl.tensor,
    entry: tl.tensor,
    ESCAPES: tl.constexpr,
    STEPS: tl.constexpr,
    ASM: tl.constexpr,
) -> Any:
    """As `_decoded`, in the form of the group."""
    words = ()
    for _ in tl.static_range(8 * STEPS):
        words = words + ((lane * 0).to(tl.uint32),)
    if short_bits > 0:
        offset = ((1 << (width - 1)) - 1) * 0x01010101
        for w in tl.static_range(2, 7):
            if ESCAPES:
                if width == w:
                    words = _decoded(
                        plane,
                        starts,
                        stream,
                        short_bits,
                        address,
                        lane,
                        step,
                        entry,
                        offset,
                        w,
                        True,
                        STEPS,
                        ASM,
                    )
    else:
        offset = tl.where(width == 8, 0, 1 << (width - 1)) * 0x01010101
        for w in tl.static_range(2, 9):
            if width == w:
                words = _decoded(
                    plane,
                    starts,
                    stream,
                    short_bits,
                    address,
                    lane,
                    step,
                    entry,
                    offset,
                    w,
                    False,
                    STEPS,
                    ASM,
                )
    return words


@triton.jit(
    do_not_specialize=(
        "first_row",
        "last_row",
        "first_column",
        "last_column",
        "first_step",
        "whole",
        "tail",
        "stride",
    )
)
def decode_kernel(
    planes: tl.tensor,
    table: tl.tensor,
    offsets: tl.tensor,
    stream: tl.tensor,
    permutation: tl.tensor,
    scale: tl.tensor,
    out: tl.tensor,
    first_row: tl.tensor,
    last_row: tl.tensor,
    first_column: tl.tensor,
    last_column: tl.tensor,
    first_step: tl.tensor,
    whole: tl.tensor,
    tail: tl.tensor,
    stride: tl.tensor,
    UNROLL: tl.constexpr,
    STEPS: tl.constexpr,
    ESCAPES: tl.constexpr,
    ROW_SCALES: tl.constexpr,
    BF16: tl.constexpr,
    VECTOR: tl.constexpr,
    SPACE: tl.constexpr,
    WARPS: tl.constexpr,
    ASM: tl.constexpr,
) -> None:
    """Rows of group program_id(0); each warp of program_id(1) one superstep of STEPS from `first_step` on.

    STEPS is UNROLL for the whole supersteps and 1 for the steps after them. `out` [last_row - first_row, stride]
    is int32 if VECTOR.
    """
    thread = tl.arange(0, 32 * WARPS)
    lane = thread % 32
    group = tl.program_id(0)
    row = tl.load(permutation + group * 8 + lane // 4).to(tl.int32)
    if permutation.dtype.element_ty == tl.int16:
        row = row & 0xFFFF
    wanted = (row >= first_row) & (row < last_row)
    if tl.max(wanted.to(tl.int32), 0) > 0:
        index = tl.program_id(1) * WARPS + thread // 32
        step = first_step + index * STEPS
        steps = whole * UNROLL + tail
        end = whole * UNROLL if STEPS > 1 or UNROLL == 1 else steps
        wanted = wanted & (step < end)
        step = tl.minimum(step, end - STEPS)
        entry = step // UNROLL if STEPS == UNROLL else step - whole * UNROLL + whole
        column = step * 128 + (lane % 4) * 32
        left = tl.where(wanted, first_column - column, 1 << 30)
        at = (row - first_row).to(tl.int64) * stride + (column - first_column)
        if VECTOR:
            at = at // (2 if BF16 else 4)
        row_scale = tl.load(scale + (row if ROW_SCALES else row * 0), mask=wanted, other=0.0)
        address = lane
        if ESCAPES and ASM:
            address = scratch(thread, SPACE)
        line = table + group * 4
        key = tl.load(line + 1)
        plane = planes + tl.load(line).to(tl.int64) * 32
        starts = offsets + tl.load(line + 3)
        words = _decoded_group(
            plane, starts, stream, key & 15, key >> 4, address, lane, step, entry, ESCAPES, STEPS, ASM
        )
        right = last_column - column
        for s in tl.static_range(STEPS):
            mine = words[8 * s : 8 * s + 8]
            if VECTOR:
                _store_vectors(
                    out + at + s * (64 if BF16 else 32),
                    mine,
                    row_scale,
                    left - 128 * s,
                    right - 128 * s,
                    BF16,
                    ASM,
                )
            else:
                _store_bytes(out + at + s * 128, mine, row_scale, left - 128 * s, right - 128 * s, BF16, ASM)


@triton.jit
def patch_kernel(
    table: tl.tensor,
    patch_columns: tl.tensor,
    patch_deltas: tl.tensor,
    permutation: tl.tensor,
    scale: tl.tensor,
    out: tl.tensor,
    first_row: tl.tensor,
    last_row: tl.tensor,
    first_column: tl.tensor,
    last_column: tl.tensor,
    stride: tl.tensor,
    ROW_SCALES: tl.constexpr,
    BF16: tl.constexpr,
    ASM: tl.constexpr,
) -> None:
    """Store the patched weights of group program_id(0) over what `decode_kernel` wrote."""
    lane = tl.arange(0, 32)
    group = tl.program_id(0)
    row = tl.load(permutation + group * 8 + lane // 4).to(tl.int32)
    if permutation.dtype.element_ty == tl.int16:
        row = row & 0xFFFF
    wanted = (row >= first_row) & (row < last_row)
    row_scale = tl.load(scale + (row if ROW_SCALES else row * 0), mask=wanted, other=0.0)
    line = table + group * 4
    key = tl.load(line + 1)
    short_bits = key >> 4
    dense = (1 << ((key & 15) - 1)) - 1
    highest = tl.where(short_bits > 0, dense + (1 << tl.maximum(short_bits - 1, 0)), dense)
    lowest = tl.where(short_bits > 0, -highest, -dense - 1)
    for base in range(tl.load(line + 2), tl.load(line + 6)):
        column = tl.load(patch_columns + base * 32 + lane).to(tl.int32) & 0xFFFF
        delta = tl.load(patch_deltas + base * 32 + lane).to(tl.int32)
        inside = wanted & (delta != 0) & (column >= first_column) & (column < last_column)
        value = tl.where(delta > 0, highest, lowest) + delta
        target = out + (row - first_row).to(tl.int64) * stride + (column - first_column)
        if BF16:
            tl.store(target, as_type(value.to(tl.float32) * row_scale, tl.bfloat16, ASM), mask=inside)
        else:
            tl.store(target, value.to(tl.int8), mask=inside)
