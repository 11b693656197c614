"""Rounding to bf16, alike in compiled kernels and in the interpreter, whose own conversion truncates."""

# A return under a constexpr `if` needs its `else`: triton would compile what follows it as well.
# ruff: noqa: RET505

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl


@triton.jit
def bf16_bits(values: tl.tensor, ASM: tl.constexpr) -> Any:
    """float32 rounded to nearest even bf16, its bits as uint16; not-a-numbers stay so."""
    if ASM:
        return values.to(tl.bfloat16).to(tl.uint16, bitcast=True)
    else:
        bits = values.to(tl.uint32, bitcast=True)
        rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
        return tl.where(values != values, 0x7FC0, rounded).to(tl.uint16)


@triton.jit
def as_type(values: tl.tensor, dtype: tl.constexpr, ASM: tl.constexpr) -> Any:
    """float32 values as `dtype`, float32 or bfloat16."""
    if dtype == tl.bfloat16:
        return bf16_bits(values, ASM).to(tl.bfloat16, bitcast=True)
    else:
        return values
