"""Decoding look-up tables to bf16: a warp takes a superstep of one group of 8 rows.

Codes are looked up four at a time by permutes, high and low bytes apart (see `tables`), and put together as
16 bits: the number, or with 4 bits twice the number, and 2^15.
"""

# A return under a constexpr `if` needs its `else` in triton, and its tuples grow by `+` alone.
# ruff: noqa: RET505, RUF005
# mypy: disable-error-code="assignment, misc"

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from kernels.gpu.bitmap_primitives import byte_permute
from kernels.gpu.conversions import bf16_pair
from kernels.gpu.decode_quads import traded
from kernels.gpu.decode_stores import interleave, store_part
from kernels.gpu.lowbit.decode_place import SIZES, lane_place, panel_place
from kernels.gpu.lowbit.table_lookup import row_entries, selectors_of
from kernels.gpu.registers import lane_words


@triton.jit
def _numbers(selectors: tl.tensor, entries: tl.tuple, BITS: tl.constexpr, ASM: tl.constexpr) -> Any:
    """Numbers of four codes in 16 bits each: two words."""
    e = entries
    if BITS == 3:
        high = byte_permute(e[0], e[1], selectors, ASM) ^ 0x80808080
        return interleave(byte_permute(e[2], e[3], selectors, ASM), high, ASM)
    else:
        # One of two permutes finds the byte; the other's answer of 0 or -1 is part of the high byte.
        upper = selectors ^ 0x8888
        a = byte_permute(e[0], e[1], selectors, ASM)
        b = byte_permute(e[2], e[3], upper, ASM)
        high = ((a & 0x7F7F7F7F) + (b & 0x7F7F7F7F)) ^ ((a ^ b ^ 0x80808080) & 0x80808080)
        low = byte_permute(e[4], e[5], selectors, ASM) | byte_permute(e[6], e[7], upper, ASM)
        return interleave(low << 1, high, ASM)


@triton.jit
def _weight(numbers: tl.tensor, table: tl.tuple, HALF: tl.constexpr) -> tl.tensor:
    """The weight of one half of a word, exactly."""
    bias, step = table
    raised = (((numbers >> (16 * HALF)) & 0xFFFF) | 0x4B000000).to(tl.float32, bitcast=True)
    return (raised - bias) * step


@triton.jit
def _part(
    even: tl.tensor,
    odd: tl.tensor,
    entries: tl.tuple,
    table: tl.tuple,
    BITS: tl.constexpr,
    ASM: tl.constexpr,
) -> Any:
    """Words of a part's 8 columns in their order."""
    first = _numbers(even, entries, BITS, ASM)
    second = _numbers(odd, entries, BITS, ASM)
    words = ()
    for i in tl.static_range(4):
        low = _weight(first[i // 2], table, i % 2)
        words = words + (bf16_pair(low, _weight(second[i // 2], table, i % 2), ASM),)
    return words


@triton.jit
def _row_table(
    zero: tl.tensor, step: tl.tensor, row: tl.tensor, last_row: tl.tensor, BITS: tl.constexpr
) -> Any:
    """What is taken from 2^23 and 16 bits of a number, and what the rest is multiplied with."""
    DOUBLED: tl.constexpr = 1 if BITS == 3 else 2
    inside = row < last_row
    bias = 8388608.0 + 32768.0 - DOUBLED * tl.load(zero + row, mask=inside, other=0.0)
    return bias, tl.load(step + row, mask=inside, other=0.0) / DOUBLED


@triton.jit(do_not_specialize=SIZES)
def table_decode_kernel(
    words: tl.tensor,
    entries: tl.tensor,
    zero: tl.tensor,
    row_step: tl.tensor,
    out: tl.tensor,
    first_row: tl.tensor,
    last_row: tl.tensor,
    first_column: tl.tensor,
    last_column: tl.tensor,
    first_step: tl.tensor,
    count: tl.tensor,
    total: tl.tensor,
    steps: tl.tensor,
    stride: tl.tensor,
    BITS: tl.constexpr,
    STEPS: tl.constexpr,
    VECTOR: tl.constexpr,
    WARPS: tl.constexpr,
    ASM: tl.constexpr,
) -> None:
    """out[row, column] = (number + zero) * step; see `table_decode.decode_tables_bf16`."""
    thread = tl.arange(0, 32 * WARPS)
    lane = thread % 32
    run = (first_row, first_step, count, total)
    group, step, alive = panel_place(run, thread, STEPS, WARPS)
    loaded = lane_words(words + (group.to(tl.int64) * steps + step) * (BITS * 32), lane, STEPS * BITS, ASM)
    row = group * 8 + lane // 4
    own = row_entries(entries + row * (1 << (BITS - 1)), BITS, ASM)
    table = _row_table(zero, row_step, row, last_row, BITS)
    limits = (first_row, last_row, first_column, last_column)
    target, left, right = lane_place(out, limits, stride, group, step, lane, alive)
    for s in tl.static_range(STEPS):
        selectors = traded(selectors_of(loaded, s * BITS, BITS), lane, ASM)
        for k in tl.static_range(4):
            w = _part(selectors[2 * k], selectors[2 * k + 1], own, table, BITS, ASM)
            first = lane % 4 * 8 + (128 * s + 32 * k)
            store_part(target + first, w, first, left, right, VECTOR, True, ASM)
