"""Storing decoded weights of a lane's 32 columns, as int8 or scaled to bf16."""

# Triton's tuples grow by `+` alone.
# ruff: noqa: RUF005
# mypy: disable-error-code="assignment, misc"

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from kernels.gpu.conversions import bf16_bits
from kernels.gpu.primitives import store_words4


@triton.jit
def _weight(word: tl.tensor, BYTE: tl.constexpr, scale: tl.tensor, ASM: tl.constexpr) -> Any:
    """The signed byte times `scale`, rounded once: bits of bf16 as uint16."""
    value = ((word.to(tl.int32, bitcast=True) << (24 - 8 * BYTE)) >> 24).to(tl.float32) * scale
    return bf16_bits(value, ASM)


@triton.jit
def store_bytes(
    out: tl.tensor,
    words: tl.tensor,
    scale: tl.tensor,
    left: tl.tensor,
    right: tl.tensor,
    BF16: tl.constexpr,
    ASM: tl.constexpr,
) -> None:
    """One weight at a time, for rows that are no multiple of 16 bytes; columns `left` <= column < `right`
    of 32.
    """
    for column in tl.static_range(32):
        inside = (left <= column) & (column < right)
        if BF16:
            bits = _weight(words[column // 4], column % 4, scale, ASM)
            tl.store(out + column, bits.to(tl.bfloat16, bitcast=True), mask=inside)
        else:
            byte = (words[column // 4] >> (8 * (column % 4))) & 0xFF
            tl.store(out + column, byte.to(tl.uint8).to(tl.int8, bitcast=True), mask=inside)


@triton.jit
def store_vectors(
    out: tl.tensor,
    words: tl.tensor,
    scale: tl.tensor,
    left: tl.tensor,
    right: tl.tensor,
    BF16: tl.constexpr,
    ASM: tl.constexpr,
) -> None:
    """As `store_bytes`, 16 bytes at a time; `out` is int32."""
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
