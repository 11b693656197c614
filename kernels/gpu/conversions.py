"""Rounding to bf16, alike in compiled kernels and in the interpreter, whose own conversion truncates."""

# A return under a constexpr `if` needs its `else` in triton, and its tuples grow by `+` alone.
# ruff: noqa: RET505, RUF005
# mypy: disable-error-code="assignment, misc"

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl


def _scaled_pair_asm(byte: int) -> str:
    """Bytes `byte` of $1 and $2, minus $3 and times $4, as the halves of $0.

    The upper bytes come from $3, which is in a register: a constant would take another instruction.
    """
    return (
        "{ .reg .b32 a,b,c; .reg .f32 x,y;"
        f" mov.b32 c,$3; prmt.b32 a,$1,c,0x765{byte}; prmt.b32 b,$2,c,0x765{byte};"
        " mov.b32 x,a; mov.b32 y,b; sub.rn.f32 x,x,$3; sub.rn.f32 y,y,$3;"
        " mul.rn.f32 x,x,$4; mul.rn.f32 y,y,$4; cvt.rn.bf16x2.f32 $0,y,x; }"
    )


_SCALED_PAIR0 = tl.constexpr(_scaled_pair_asm(0))
_SCALED_PAIR1 = tl.constexpr(_scaled_pair_asm(1))
_SCALED_PAIR2 = tl.constexpr(_scaled_pair_asm(2))
_SCALED_PAIR3 = tl.constexpr(_scaled_pair_asm(3))


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
def bf16_pair(low: tl.tensor, high: tl.tensor, ASM: tl.constexpr) -> Any:
    """Two float32 values rounded to nearest even bf16: the halves of a word, uint32."""
    if ASM:
        return tl.inline_asm_elementwise(
            "cvt.rn.bf16x2.f32 $0,$2,$1;", "=r,f,f", [low, high], dtype=tl.uint32, is_pure=True, pack=1
        )
    else:
        return bf16_bits(low, False).to(tl.uint32) | (bf16_bits(high, False).to(tl.uint32) << 16)


@triton.jit
def as_type(values: tl.tensor, dtype: tl.constexpr, ASM: tl.constexpr) -> Any:
    """float32 values as `dtype`, float32 or bfloat16."""
    if dtype == tl.bfloat16:
        return bf16_bits(values, ASM).to(tl.bfloat16, bitcast=True)
    else:
        return values


@triton.jit
def scaled_pairs(
    low: tl.tensor, high: tl.tensor, bias: tl.tensor, scale: tl.tensor, ASM: tl.constexpr
) -> Any:
    """Unsigned bytes of two words, minus `bias` and times `scale`, each rounded to float32 and then to bf16.

    Four words, one for each byte: that of `low` in the lower half, that of `high` in the upper. `bias` is
    2^23 and a whole number up to 255, float32 like `scale`: under the exponent of 2^23 a byte is the float
    of 2^23 more, so that no integer is converted.
    """
    if ASM:
        return (
            _scaled_pair(_SCALED_PAIR0, low, high, bias, scale),
            _scaled_pair(_SCALED_PAIR1, low, high, bias, scale),
            _scaled_pair(_SCALED_PAIR2, low, high, bias, scale),
            _scaled_pair(_SCALED_PAIR3, low, high, bias, scale),
        )
    else:
        pairs = ()
        for byte in tl.static_range(4):
            first = _scaled_byte(low, bias, scale, byte)
            pairs = pairs + (first | (_scaled_byte(high, bias, scale, byte) << 16),)
        return pairs


@triton.jit
def _scaled_pair(
    CODE: tl.constexpr, low: tl.tensor, high: tl.tensor, bias: tl.tensor, scale: tl.tensor
) -> Any:
    operands = [low, high, bias, scale]
    return tl.inline_asm_elementwise(CODE, "=r,r,r,f,f", operands, dtype=tl.uint32, is_pure=True, pack=1)


@triton.jit
def _scaled_byte(word: tl.tensor, bias: tl.tensor, scale: tl.tensor, BYTE: tl.constexpr) -> Any:
    raised = (((word >> (8 * BYTE)) & 0xFF) | 0x4B000000).to(tl.float32, bitcast=True)
    return bf16_bits((raised - bias) * scale, False).to(tl.uint32)
