"""The integer tensor core operation the products are made of, with a plain twin (see `primitives`)."""

# A return under a constexpr `if` needs its `else`: triton would compile what follows it as well.
# ruff: noqa: RET505

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl


@triton.jit
def _signed_bytes(words: tl.tensor) -> Any:
    """[n] words -> [n, 4] int32, bytes in two's complement, lowest first."""
    shifts = (tl.arange(0, 4) * 8)[None, :]
    return (words.to(tl.int32, bitcast=True)[:, None] << (24 - shifts)) >> 24


@triton.jit
def _bytes(words: tl.tensor, SIGNED: tl.constexpr) -> Any:
    values = _signed_bytes(words)
    if not SIGNED:
        values = values & 0xFF
    return values


@triton.jit
def _quad_dots(a: tl.tensor, b: tl.tensor, SIGNED: tl.constexpr) -> Any:
    """[warps, 8, 8] int32: bytes of quad g of `a` times signed bytes of quad n of `b`."""
    WARPS: tl.constexpr = a.shape[0] // 32
    left = tl.reshape(_bytes(a, SIGNED), [WARPS, 8, 1, 16])
    right = tl.reshape(_signed_bytes(b), [WARPS, 1, 8, 16])
    return tl.sum(left * right, 3)


@triton.jit
def _split_columns(dots: tl.tensor) -> Any:
    WARPS: tl.constexpr = dots.shape[0]
    even, odd = tl.split(tl.reshape(dots, [WARPS, 8, 4, 2]))
    return tl.reshape(even, [WARPS * 32]), tl.reshape(odd, [WARPS * 32])


@triton.jit
def mma(
    a0: tl.tensor,
    a1: tl.tensor,
    a2: tl.tensor,
    a3: tl.tensor,
    b0: tl.tensor,
    b1: tl.tensor,
    c0: tl.tensor,
    c1: tl.tensor,
    c2: tl.tensor,
    c3: tl.tensor,
    SIGNED: tl.constexpr,
    ASM: tl.constexpr,
) -> Any:
    """One `mma.m16n8k32` of 8-bit integers: A is s8 if SIGNED else u8, B is s8; int32 accumulators c0..c3.

    Fragments as in the PTX manual: lane = 4 g + c; a0, a2 hold row g, a1, a3 row g + 8; b0, b1 hold column g;
    c0, c1 are row g, columns 2c and 2c + 1, and c2, c3 the same of row g + 8.
    """
    if ASM:
        if SIGNED:
            return _mma_asm("s8", a0, a1, a2, a3, b0, b1, c0, c1, c2, c3)
        else:
            return _mma_asm("u8", a0, a1, a2, a3, b0, b1, c0, c1, c2, c3)
    else:
        low0, low1 = _split_columns(_quad_dots(a0, b0, SIGNED) + _quad_dots(a2, b1, SIGNED))
        high0, high1 = _split_columns(_quad_dots(a1, b0, SIGNED) + _quad_dots(a3, b1, SIGNED))
        return c0 + low0, c1 + low1, c2 + high0, c3 + high1


@triton.jit
def _mma_asm(
    KIND: tl.constexpr,
    a0: tl.tensor,
    a1: tl.tensor,
    a2: tl.tensor,
    a3: tl.tensor,
    b0: tl.tensor,
    b1: tl.tensor,
    c0: tl.tensor,
    c1: tl.tensor,
    c2: tl.tensor,
    c3: tl.tensor,
) -> Any:
    return tl.inline_asm_elementwise(
        "mma.sync.aligned.m16n8k32.row.col.s32."
        + KIND
        + ".s8.s32 {$0,$1,$2,$3},{$4,$5,$6,$7},{$8,$9},{$10,$11,$12,$13};",
        "=r,=r,=r,=r,r,r,r,r,r,r,r,r,r,r",
        [a0, a1, a2, a3, b0, b1, c0, c1, c2, c3],
        dtype=(tl.int32, tl.int32, tl.int32, tl.int32),
        is_pure=True,
        pack=1,
    )
