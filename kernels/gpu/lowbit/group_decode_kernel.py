"""Decoding group codes to bf16: a warp takes a superstep of one block of 8 rows.

A lane's 32 columns of a step are traded among the four lanes of its row, so that these store neighbouring
parts of 16 bytes together; scale and zero are the row's.
"""

# Triton's tuples grow by `+` alone.
# ruff: noqa: RUF005
# mypy: disable-error-code="assignment, misc"

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from kernels.gpu.conversions import bf16_pair
from kernels.gpu.decode_quads import traded
from kernels.gpu.decode_stores import store_part
from kernels.gpu.lowbit.decode_place import SIZES, lane_place, panel_place
from kernels.gpu.registers import lane_words, plain_registers


@triton.jit
def _weight(codes: tl.tensor, table: tl.tuple, BYTE: tl.constexpr, BITS: tl.constexpr) -> tl.tensor:
    """The weight of one byte: under the exponent of 2^23 a byte is the float of 2^23 more.

    (code - middle) * scale is exact, so one rounding is left, with a fused multiply-add and without.
    """
    scale, zero = table
    raised = (((codes >> (8 * BYTE)) & 0xFF) | 0x4B000000).to(tl.float32, bitcast=True)
    return (raised - (8388608.0 + (1 << (BITS - 1)))) * scale + zero


@triton.jit
def _part(even: tl.tensor, odd: tl.tensor, table: tl.tuple, BITS: tl.constexpr, ASM: tl.constexpr) -> Any:
    """Words of a part's 8 columns in their order."""
    words = ()
    for byte in tl.static_range(4):
        first = _weight(even, table, byte, BITS)
        words = words + (bf16_pair(first, _weight(odd, table, byte, BITS), ASM),)
    return words


@triton.jit(do_not_specialize=SIZES)
def group_decode_kernel(
    words: tl.tensor,
    tables: tl.tensor,
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
    """out[row, column] = (code - 2^(BITS-1)) * scale + zero; see `group_decode.decode_groups_bf16`."""
    thread = tl.arange(0, 32 * WARPS)
    lane = thread % 32
    run = (first_row, first_step, count, total)
    block, step, alive = panel_place(run, thread, STEPS, WARPS)
    loaded = lane_words(words + (block.to(tl.int64) * steps + step) * (BITS * 32), lane, STEPS * BITS, ASM)
    entries = tables + (block.to(tl.int64) * ((steps + 3) // 4) + step // 4) * 32 + lane // 4 * 4 + step % 4
    limits = (first_row, last_row, first_column, last_column)
    target, left, right = lane_place(out, limits, stride, block, step, lane, alive)
    for s in tl.static_range(STEPS):
        entry = tl.load(entries + s).to(tl.uint32, bitcast=True)
        table = (
            (entry << 16).to(tl.float32, bitcast=True),
            (entry & 0xFFFF0000).to(tl.float32, bitcast=True),
        )
        codes = traded(plain_registers(loaded, s * BITS, BITS), lane, ASM)
        for k in tl.static_range(4):
            w = _part(codes[2 * k], codes[2 * k + 1], table, BITS, ASM)
            first = lane % 4 * 8 + (128 * s + 32 * k)
            store_part(target + first, w, first, left, right, VECTOR, True, ASM)
