"""Decoding packed weights to int8 or bf16: planes and escapes first, the patched weights over them."""

# A return under a constexpr `if` needs its `else` in triton, its tuples grow by `+` alone, and a constexpr
# `if` must stand by itself.
# ruff: noqa: RUF005, SIM102
# mypy: disable-error-code="assignment, misc"

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from kernels.gpu.decode_patches import extremes, patch_round, store_patches
from kernels.gpu.decode_quads import traded
from kernels.gpu.decode_stores import store_parts
from kernels.gpu.group import group_lines, group_rows
from kernels.gpu.saving import scratch
from kernels.gpu.superstep import LISTED, PLAIN, read_superstep, superstep_registers


@triton.jit
def _decoded(
    group: tl.tensor,
    lane: tl.tensor,
    step: tl.tensor,
    entry: tl.tensor,
    WIDTH: tl.constexpr,
    KIND: tl.constexpr,
    STEPS: tl.constexpr,
    FLIPPED: tl.constexpr,
    ASM: tl.constexpr,
) -> Any:
    """Codes of the lane's 32 columns of each of STEPS steps from `step` on: tuple of 8 * STEPS registers.

    A code is the weight plus the form's offset, a signed byte. FLIPPED adds 128 where it may be negative.
    """
    start = lane * 0
    end = start
    if KIND != PLAIN:
        start = tl.load(group[1] + entry)
    if KIND == LISTED:
        end = tl.load(group[1] + entry + 1)
    pointer = group[0] + step * (WIDTH * 32)
    read = read_superstep(pointer, group, start, end, lane, WIDTH, KIND, STEPS, False, ASM)
    registers = superstep_registers(read, group, start, end, lane, WIDTH, KIND, STEPS, ASM)
    codes = ()
    for r in tl.static_range(8 * STEPS):
        code = registers[r]
        if WIDTH <= 4 and KIND == PLAIN and r % 2 == 1:
            code = code >> WIDTH
        if FLIPPED and (KIND != PLAIN or WIDTH == 8):
            code = code ^ 0x80808080
        codes = codes + (code,)
    return codes


@triton.jit
def _decoded_group(
    group: tl.tensor,
    width: tl.tensor,
    lane: tl.tensor,
    step: tl.tensor,
    entry: tl.tensor,
    KINDS: tl.constexpr,
    STEPS: tl.constexpr,
    FLIPPED: tl.constexpr,
    ASM: tl.constexpr,
) -> Any:
    """As `_decoded`, in the form of the group; KINDS has a bit for each kind that occurs."""
    codes = ((lane * 0).to(tl.uint32),) * (8 * STEPS)
    for kind in tl.static_range(0, 3):
        if (KINDS >> kind) & 1:
            if group[5] == kind:
                for w in tl.static_range(2, 9 if kind == 0 else 7):
                    if width == w:
                        codes = _decoded(group, lane, step, entry, w, kind, STEPS, FLIPPED, ASM)
    return codes


@triton.jit
def _coding(kind: tl.tensor, width: tl.tensor, scale: tl.tensor) -> Any:
    """`decode_stores.store_parts`'s, for the codes of `_decoded` (FLIPPED for bf16)."""
    offset = tl.where(width == 8, 0, (1 << (width - 1)) - (kind == 1).to(tl.int32))
    flipped = (kind > 0) | (width == 8)
    bias = (offset + tl.where(flipped, 0x800080, 0x800000)).to(tl.float32)
    return (offset * 0x01010101).to(tl.uint32), scale * 0 + bias, scale


@triton.jit
def _store_steps(
    out: tl.tensor,
    codes: tl.tensor,
    coding: tl.tensor,
    lane: tl.tensor,
    inside: tl.tensor,
    STEPS: tl.constexpr,
    VECTOR: tl.constexpr,
    BF16: tl.constexpr,
    ASM: tl.constexpr,
) -> None:
    """Store the columns from inside[0] to before inside[1] of STEPS steps; `out` is column 0."""
    left, right = inside
    shift = lane % 4 * (8 if VECTOR else 32)
    for s in tl.static_range(STEPS):
        mine = codes[8 * s : 8 * s + 8]
        if VECTOR:
            mine = traded(mine, lane, ASM)
        at = shift + 128 * s
        store_parts(out + at, mine, coding, left - at, right - at, 32 if VECTOR else 8, VECTOR, BF16, ASM)


@triton.jit
def _place(
    first_step: tl.tensor,
    whole: tl.tensor,
    tail: tl.tensor,
    thread: tl.tensor,
    UNROLL: tl.constexpr,
    STEPS: tl.constexpr,
    WARPS: tl.constexpr,
) -> Any:
    """First step of the program, end of such supersteps, the warp's own step, the one it reads, its entry."""
    begin = first_step + tl.program_id(1) * (WARPS * STEPS)
    end = whole * UNROLL + (0 if STEPS == UNROLL else tail)
    mine = begin + thread // 32 * STEPS
    step = tl.minimum(mine, end - STEPS)
    entry = step // UNROLL if STEPS == UNROLL else step - whole * UNROLL + whole
    return begin, end, mine, step, entry


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
    patch_columns: tl.tensor,
    patch_deltas: tl.tensor,
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
    ALL_ROWS: tl.constexpr,
    ROW_SCALES: tl.constexpr,
    PATCHES: tl.constexpr,
    BF16: tl.constexpr,
    VECTOR: tl.constexpr,
    SPACE: tl.constexpr,
    WARPS: tl.constexpr,
    ASM: tl.constexpr,
) -> None:
    """Rows of group program_id(0); each warp of program_id(1) one superstep of STEPS from `first_step` on.

    STEPS is UNROLL for the whole supersteps and 1 for the steps after them. `out` is [last_row - first_row,
    stride]; VECTOR says that its columns begin and end at aligned parts of 8, ALL_ROWS that it has them all.
    """
    thread = tl.arange(0, 32 * WARPS)
    lane = thread % 32
    row = group_rows(permutation, tl.program_id(0) * 8 + lane // 4)
    wanted = (row >= first_row) & (row < last_row)
    some = True
    if not ALL_ROWS:
        some = tl.max(wanted.to(tl.int32), 0) > 0
    if some:
        row_scale = tl.load(scale + (row if ROW_SCALES else row * 0), mask=wanted, other=0.0)
        address = scratch(thread, SPACE) if KINDS > 1 and ASM else lane
        group, width, first, last = group_lines(planes, table, offsets, stream, address, tl.program_id(0))
        begin, end, mine, step, entry = _place(first_step, whole, tail, thread, UNROLL, STEPS, WARPS)
        codes = _decoded_group(group, width, lane, step, entry, KINDS, STEPS, BF16, ASM)
        patches = (patch_columns, patch_deltas, first, last)
        patch = patch_round(patches, first, thread) if PATCHES else 0
        target = out + (row - first_row).to(tl.int64) * stride - first_column
        left = tl.where(wanted, first_column, 1 << 30)
        coding = _coding(group[5], width, row_scale)
        inside = (tl.where(mine < end, left, 1 << 30) - step * 128, last_column - step * 128)
        _store_steps(target + step * 128, codes, coding, lane, inside, STEPS, VECTOR, BF16, ASM)
        if PATCHES:
            left = tl.maximum(left, begin * 128)
            right = tl.minimum(last_column, tl.minimum(begin + WARPS * STEPS, end) * 128)
            ends = extremes(group, width)
            store_patches(target, patch, patches, ends, row_scale, thread, left, right, WARPS, BF16, ASM)
