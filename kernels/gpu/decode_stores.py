"""Storing decoded weights of a lane, as int8 or scaled to bf16.

They come as registers of fragments, codes of 8 columns in two: byte i of registers 2 k and 2 k + 1 is that
of columns 2 i and 2 i + 1 of part k. For int8 a code is the weight plus an offset, modulo 256; for bf16 an
unsigned byte, the weight plus what the bias of `conversions.scaled_pairs` exceeds 2^23 by.
"""

# A return under a constexpr `if` needs its `else` in triton, and its tuples grow by `+` alone.
# ruff: noqa: RET505
# mypy: disable-error-code="assignment, misc"

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from kernels.gpu.conversions import scaled_pairs
from kernels.gpu.primitives import store_words4


@triton.jit
def _minus(word: tl.tensor, offset: tl.tensor) -> Any:
    """Bytes of `word` minus `offset` (0 to 127 in every byte), modulo 256."""
    return ((word | 0x80808080) - offset) ^ ((word ^ 0xFFFFFFFF) & 0x80808080)


@triton.jit
def interleave(even: tl.tensor, odd: tl.tensor, ASM: tl.constexpr) -> Any:
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
    registers: tl.tensor, PART: tl.constexpr, coding: tl.tensor, BF16: tl.constexpr, ASM: tl.constexpr
) -> Any:
    """Words of a part's 8 columns in their order: tuple of 4 (bf16) or 2 (int8)."""
    offset, bias, scale = coding
    even = registers[2 * PART]
    odd = registers[2 * PART + 1]
    if BF16:
        return scaled_pairs(even, odd, bias, scale, ASM)
    else:
        return interleave(_minus(even, offset), _minus(odd, offset), ASM)


@triton.jit
def _store_words2(pointers: tl.tensor, w0: tl.tensor, w1: tl.tensor, mask: tl.tensor) -> None:
    """Store two consecutive words, 8-byte aligned, where `mask` (int32) is not 0."""
    # The result is a dummy: an elementwise operation must have one.
    tl.inline_asm_elementwise(
        "{ .reg .pred p; setp.ne.s32 p,$4,0; @p st.global.v2.u32 [$1],{$2,$3}; mov.u32 $0,0; }",
        "=r,l,r,r,r",
        [pointers, w0, w1, mask],
        dtype=tl.uint32,
        is_pure=False,
        pack=1,
    )


@triton.jit
def store_part(
    out: tl.tensor,
    w: tl.tensor,
    first: tl.tensor,
    left: tl.tensor,
    right: tl.tensor,
    VECTOR: tl.constexpr,
    BF16: tl.constexpr,
    ASM: tl.constexpr,
) -> None:
    """Store the 8 columns from `first` on, in words `w` of 2 (bf16) or 4 (int8) columns, at `out`.

    Only where `left` <= column < `right`; VECTOR stores the part whole, at an address aligned to its size.
    """
    if VECTOR and ASM:
        inside = ((left <= first) & (first + 8 <= right)).to(tl.int32)
        if BF16:
            store_words4(out, w[0], w[1], w[2], w[3], inside, True)
        else:
            _store_words2(out, w[0], w[1], inside)
    else:
        for column in tl.static_range(8):
            inside = (left <= first + column) & (first + column < right)
            if BF16:
                bits = (w[column // 2] >> (16 * (column % 2))).to(tl.uint16)
                tl.store(out + column, bits.to(tl.bfloat16, bitcast=True), mask=inside)
            else:
                byte = (w[column // 4] >> (8 * (column % 4))) & 0xFF
                tl.store(out + column, byte.to(tl.uint8).to(tl.int8, bitcast=True), mask=inside)


@triton.jit
def store_parts(
    out: tl.tensor,
    registers: tl.tensor,
    coding: tl.tensor,
    left: tl.tensor,
    right: tl.tensor,
    DISTANCE: tl.constexpr,
    VECTOR: tl.constexpr,
    BF16: tl.constexpr,
    ASM: tl.constexpr,
) -> None:
    """Store 4 parts, DISTANCE columns from one to the next, where `left` <= column < `right`.

    `out` is column 0; `coding` is offset (uint32, in every byte), bias and scale (float32).
    """
    for part in tl.static_range(4):
        w = _column_words(registers, part, coding, BF16, ASM)
        first = part * DISTANCE
        store_part(out + first, w, first, left, right, VECTOR, BF16, ASM)
