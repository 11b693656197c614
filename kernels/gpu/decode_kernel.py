"""Decoding packed weights to int8 or bf16: planes and escapes first, the patched weights over them."""

# A return under a constexpr `if` needs its `else` in triton, its tuples grow by `+` alone, and a constexpr
# `if` must stand by itself.
# ruff: noqa: RET505, SIM102
# mypy: disable-error-code="assignment, misc"

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from kernels.gpu.conversions import as_type
from kernels.gpu.decode_stores import store_bytes, store_vectors
from kernels.gpu.group import group_lines, group_rows
from kernels.gpu.saving import scratch
from kernels.gpu.superstep import LISTED, PLAIN, superstep_registers


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
    SCALED: tl.constexpr,
    WIDTH: tl.constexpr,
    ASM: tl.constexpr,
) -> Any:
    """Int8 weights of a lane's 32 columns of a step, in column order: tuple of 8 words."""
    words = ()
    for j in tl.static_range(4):
        even = registers[FIRST + 2 * j]
        odd = registers[FIRST + 2 * j + 1]
        if SCALED:
            odd = odd >> WIDTH
        words = words + _interleave(_minus(even, offset), _minus(odd, offset), ASM)
    return words


@triton.jit
def _minus(word: tl.tensor, offset: tl.tensor) -> Any:
    """Bytes of `word` minus `offset` (0 to 127 in every byte), modulo 256."""
    return ((word | 0x80808080) - offset) ^ ((word ^ 0xFFFFFFFF) & 0x80808080)


@triton.jit
def _decoded(
    group: tl.tensor,
    lane: tl.tensor,
    step: tl.tensor,
    entry: tl.tensor,
    offset: tl.tensor,
    WIDTH: tl.constexpr,
    KIND: tl.constexpr,
    STEPS: tl.constexpr,
    ASM: tl.constexpr,
) -> Any:
    """Weights of the lane's 32 columns of each of STEPS steps from `step` on: tuple of 8 * STEPS words."""
    start = lane * 0
    end = start
    if KIND != PLAIN:
        start = tl.load(group[1] + entry)
    if KIND == LISTED:
        end = tl.load(group[1] + entry + 1)
    pointer = group[0] + step * (WIDTH * 32)
    registers = superstep_registers(pointer, group, start, end, lane, WIDTH, KIND, STEPS, ASM)
    words = ()
    for s in tl.static_range(STEPS):
        words = words + _column_words(registers, 8 * s, offset, WIDTH <= 4 and KIND == PLAIN, WIDTH, ASM)
    return words


@triton.jit
def _decoded_group(
    group: tl.tensor,
    width: tl.tensor,
    lane: tl.tensor,
    step: tl.tensor,
    entry: tl.tensor,
    KINDS: tl.constexpr,
    STEPS: tl.constexpr,
    ASM: tl.constexpr,
) -> Any:
    """As `_decoded`, in the form of the group; KINDS has a bit for each kind that occurs."""
    words = ((lane * 0).to(tl.uint32),) * (8 * STEPS)
    offset = tl.where(width == 8, 0, (1 << (width - 1)) - (group[5] == 1).to(tl.int32)) * 0x01010101
    for kind in tl.static_range(0, 3):
        if (KINDS >> kind) & 1:
            if group[5] == kind:
                for w in tl.static_range(2, 9 if kind == 0 else 7):
                    if width == w:
                        words = _decoded(group, lane, step, entry, offset, w, kind, STEPS, ASM)
    return words


@triton.jit(
    do_not_specialize=(
        "first_row", "last_row", "first_column", "last_column", "first_step", "whole", "tail", "stride"
    )
)  # fmt: skip
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
    KINDS: tl.constexpr,
    ROW_SCALES: tl.constexpr,
    BF16: tl.constexpr,
    VECTOR: tl.constexpr,
    SPACE: tl.constexpr,
    WARPS: tl.constexpr,
    ASM: tl.constexpr,
) -> None:
    """Rows of group program_id(0); each warp of program_id(1) one superstep of STEPS from `first_step` on.

    STEPS is UNROLL for the whole supersteps and 1 for the steps after them. `out` [last_row - first_row,
    stride] is int32 if VECTOR.
    """
    thread = tl.arange(0, 32 * WARPS)
    lane = thread % 32
    row = group_rows(permutation, tl.program_id(0) * 8 + lane // 4)
    wanted = (row >= first_row) & (row < last_row)
    if tl.max(wanted.to(tl.int32), 0) > 0:
        step = first_step + (tl.program_id(1) * WARPS + thread // 32) * STEPS
        end = whole * UNROLL
        if STEPS != UNROLL:
            end += tail
        wanted = wanted & (step < end)
        step = tl.minimum(step, end - STEPS)
        entry = step // UNROLL if STEPS == UNROLL else step - whole * UNROLL + whole
        column = step * 128 + (lane % 4) * 32
        left = tl.where(wanted, first_column - column, 1 << 30)
        right = last_column - column
        at = (row - first_row).to(tl.int64) * stride + (column - first_column)
        if VECTOR:
            at = at // (2 if BF16 else 4)
        row_scale = tl.load(scale + (row if ROW_SCALES else row * 0), mask=wanted, other=0.0)
        address = lane
        if KINDS > 1 and ASM:
            address = scratch(thread, SPACE)
        group, width, _, _ = group_lines(planes, table, offsets, stream, address, tl.program_id(0))
        words = _decoded_group(group, width, lane, step, entry, KINDS, STEPS, ASM)
        for s in tl.static_range(STEPS):
            mine = words[8 * s : 8 * s + 8]
            if VECTOR:
                target = out + at + s * (64 if BF16 else 32)
                store_vectors(target, mine, row_scale, left - 128 * s, right - 128 * s, BF16, ASM)
            else:
                store_bytes(out + at + s * 128, mine, row_scale, left - 128 * s, right - 128 * s, BF16, ASM)


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
    row = group_rows(permutation, tl.program_id(0) * 8 + lane // 4)
    wanted = (row >= first_row) & (row < last_row)
    row_scale = tl.load(scale + (row if ROW_SCALES else row * 0), mask=wanted, other=0.0)
    line = table + tl.program_id(0) * 4
    key = tl.load(line + 1)
    short_bits = (key >> 4) & 15
    escaped = (short_bits > 0) & (key < 256)
    reach = tl.where(short_bits > 0, 1 << tl.maximum(short_bits - 1, 0), 0)
    highest = (1 << ((key & 15) - 1)) - 1 + reach
    lowest = -highest - 1 + escaped.to(tl.int32)
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
