"""Two more primitives on words (uint32) with plain Triton twins behind `ASM`, as in `primitives`."""

# A return under a constexpr `if` needs its `else`: triton would compile what follows it as well.
# ruff: noqa: RET505

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl


@triton.jit
def byte_permute(low: tl.tensor, high: tl.tensor, selectors: tl.tensor, ASM: tl.constexpr) -> Any:
    """`prmt`: byte i of the result is the byte of (high:low) that selector nibble i (of four) names.

    A nibble's top bit asks for the sign of that byte, eight times, instead of the byte.
    """
    if ASM:
        return tl.inline_asm_elementwise(
            "prmt.b32 $0,$1,$2,$3;",
            "=r,r,r,r",
            [low, high, selectors],
            dtype=tl.uint32,
            is_pure=True,
            pack=1,
        )
    else:
        result = low & 0
        for place in tl.static_range(4):
            nibble = (selectors >> (4 * place)) & 15
            source = tl.where((nibble & 4) != 0, high, low)
            byte = (source >> (8 * (nibble & 3))) & 0xFF
            sign = tl.where(byte >= 0x80, 0xFF, 0).to(tl.uint32)
            result |= tl.where(nibble >= 8, sign, byte) << (8 * place)
        return result


@triton.jit
def funnel_right(low: tl.tensor, high: tl.tensor, shift: tl.tensor, ASM: tl.constexpr) -> Any:
    """Lower word of (high:low) >> (shift & 31)."""
    if ASM:
        return tl.inline_asm_elementwise(
            "shf.r.wrap.b32 $0,$1,$2,$3;",
            "=r,r,r,r",
            [low, high, shift],
            dtype=tl.uint32,
            is_pure=True,
            pack=1,
        )
    else:
        by = (shift & 31).to(tl.uint32)
        return (low >> by) | ((high << 1) << (31 - by))
