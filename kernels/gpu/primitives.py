"""Warp-level primitives for kernels whose tensors have one element per thread, shape [32 * warps].

Each has two forms behind the constexpr `ASM`: the PTX instruction, and a plain Triton twin that computes the
same bits. The twin runs in triton's interpreter (TRITON_INTERPRET=1, no GPU) and on any device, so one kernel
serves both; tests compare the two. The thread of element i is lane i % 32 of warp i // 32. Words are uint32.
"""

# A return under a constexpr `if` needs its `else`: triton would compile what follows it as well.
# ruff: noqa: RET505

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl
from triton import knobs


def interpreting() -> bool:
    """Whether kernels decorated now run in triton's interpreter instead of being compiled."""
    return bool(knobs.runtime.interpret)


def launch(kernel: Any, grid: tuple[int, ...], *args: Any, asm: bool | None = None, **options: Any) -> None:
    """Start `kernel[grid](*args, ASM=...)`: PTX primitives by default, their twins in the interpreter.

    `options` are the kernel's constexpr arguments and triton's launch options (num_warps, maxnreg); these
    are left out in the interpreter. An empty grid starts nothing.
    """
    if 0 in grid:
        return
    if interpreting():
        for name in ("num_warps", "num_stages", "maxnreg"):
            options.pop(name, None)
        asm = False
    kernel[grid](*args, ASM=True if asm is None else asm, **options)


@triton.jit
def load_words4(pointers: Any, mask: Any, ASM: tl.constexpr) -> Any:
    """Four consecutive words, 16-byte aligned, read once (kept out of L1); zeros where `mask` (int32) is 0."""
    if ASM:
        return tl.inline_asm_elementwise(
            "{ .reg .pred p; setp.ne.s32 p,$5,0; mov.u32 $0,0; mov.u32 $1,0; mov.u32 $2,0; mov.u32 $3,0;"
            " @p ld.global.nc.L1::no_allocate.v4.u32 {$0,$1,$2,$3},[$4]; }",
            "=&r,=&r,=&r,=&r,l,r",
            [pointers, mask],
            dtype=(tl.uint32, tl.uint32, tl.uint32, tl.uint32),
            is_pure=True,
            pack=1,
        )
    else:
        w0 = tl.load(pointers, mask=mask != 0, other=0).to(tl.uint32, bitcast=True)
        w1 = tl.load(pointers + 1, mask=mask != 0, other=0).to(tl.uint32, bitcast=True)
        w2 = tl.load(pointers + 2, mask=mask != 0, other=0).to(tl.uint32, bitcast=True)
        w3 = tl.load(pointers + 3, mask=mask != 0, other=0).to(tl.uint32, bitcast=True)
        return w0, w1, w2, w3


@triton.jit
def load_words2(pointers: Any, mask: Any, ASM: tl.constexpr) -> Any:
    """Two consecutive words, 8-byte aligned, read once; zeros where `mask` (int32) is 0."""
    if ASM:
        return tl.inline_asm_elementwise(
            "{ .reg .pred p; setp.ne.s32 p,$3,0; mov.u32 $0,0; mov.u32 $1,0;"
            " @p ld.global.nc.L1::no_allocate.v2.u32 {$0,$1},[$2]; }",
            "=&r,=&r,l,r",
            [pointers, mask],
            dtype=(tl.uint32, tl.uint32),
            is_pure=True,
            pack=1,
        )
    else:
        w0 = tl.load(pointers, mask=mask != 0, other=0).to(tl.uint32, bitcast=True)
        w1 = tl.load(pointers + 1, mask=mask != 0, other=0).to(tl.uint32, bitcast=True)
        return w0, w1


@triton.jit
def load_shared_input4(pointers: Any, ASM: tl.constexpr) -> Any:
    """Four consecutive words, 16-byte aligned, of an input that many warps read (kept in L1)."""
    if ASM:
        return tl.inline_asm_elementwise(
            "ld.global.nc.v4.u32 {$0,$1,$2,$3},[$4];",
            "=r,=r,=r,=r,l",
            [pointers],
            dtype=(tl.uint32, tl.uint32, tl.uint32, tl.uint32),
            is_pure=True,
            pack=1,
        )
    else:
        w0 = tl.load(pointers).to(tl.uint32, bitcast=True)
        w1 = tl.load(pointers + 1).to(tl.uint32, bitcast=True)
        w2 = tl.load(pointers + 2).to(tl.uint32, bitcast=True)
        w3 = tl.load(pointers + 3).to(tl.uint32, bitcast=True)
        return w0, w1, w2, w3


@triton.jit
def store_words4(pointers: Any, w0: Any, w1: Any, w2: Any, w3: Any, mask: Any, ASM: tl.constexpr) -> None:
    """Store four consecutive words, 16-byte aligned, where `mask` (int32) is not 0."""
    if ASM:
        # The result is a dummy: an elementwise operation must have one.
        tl.inline_asm_elementwise(
            "{ .reg .pred p; setp.ne.s32 p,$6,0; @p st.global.v4.u32 [$1],{$2,$3,$4,$5}; mov.u32 $0,0; }",
            "=r,l,r,r,r,r,r",
            [pointers, w0, w1, w2, w3, mask],
            dtype=tl.uint32,
            is_pure=False,
            pack=1,
        )
    else:
        tl.store(pointers, w0.to(tl.int32, bitcast=True), mask=mask != 0)
        tl.store(pointers + 1, w1.to(tl.int32, bitcast=True), mask=mask != 0)
        tl.store(pointers + 2, w2.to(tl.int32, bitcast=True), mask=mask != 0)
        tl.store(pointers + 3, w3.to(tl.int32, bitcast=True), mask=mask != 0)


@triton.jit
def _signed_bytes(words: Any) -> Any:
    """[n] words -> [n, 4] int32, bytes in two's complement, lowest first."""
    shifts = (tl.arange(0, 4) * 8)[None, :]
    return (words.to(tl.int32, bitcast=True)[:, None] << (24 - shifts)) >> 24


@triton.jit
def _bytes(words: Any, SIGNED: tl.constexpr) -> Any:
    values = _signed_bytes(words)
    if not SIGNED:
        values = values & 0xFF
    return values


@triton.jit
def _quad_dots(a: Any, b: Any, SIGNED: tl.constexpr) -> Any:
    """[warps, 8, 8] int32: bytes of quad g of `a` times signed bytes of quad n of `b`."""
    WARPS: tl.constexpr = a.shape[0] // 32
    left = tl.reshape(_bytes(a, SIGNED), [WARPS, 8, 1, 16])
    right = tl.reshape(_signed_bytes(b), [WARPS, 1, 8, 16])
    return tl.sum(left * right, 3)


@triton.jit
def _split_columns(dots: Any) -> Any:
    WARPS: tl.constexpr = dots.shape[0]
    even, odd = tl.split(tl.reshape(dots, [WARPS, 8, 4, 2]))
    return tl.reshape(even, [WARPS * 32]), tl.reshape(odd, [WARPS * 32])


@triton.jit
def mma(
    a0: Any,
    a1: Any,
    a2: Any,
    a3: Any,
    b0: Any,
    b1: Any,
    c0: Any,
    c1: Any,
    c2: Any,
    c3: Any,
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
    a0: Any,
    a1: Any,
    a2: Any,
    a3: Any,
    b0: Any,
    b1: Any,
    c0: Any,
    c1: Any,
    c2: Any,
    c3: Any,
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


@triton.jit
def popc(words: Any, ASM: tl.constexpr) -> Any:
    """Ones of each word, int32."""
    if ASM:
        return tl.inline_asm_elementwise(
            "popc.b32 $0,$1;", "=r,r", [words], dtype=tl.int32, is_pure=True, pack=1
        )
    else:
        pairs = words - ((words >> 1) & 0x55555555)
        nibbles = (pairs & 0x33333333) + ((pairs >> 2) & 0x33333333)
        octets = (nibbles + (nibbles >> 4)) & 0x0F0F0F0F
        return ((octets + (octets >> 8) + (octets >> 16) + (octets >> 24)) & 0xFF).to(tl.int32)


@triton.jit
def warp_scan(values: Any, ASM: tl.constexpr) -> Any:
    """Inclusive running sum of int32 values over the lanes of each warp."""
    if ASM:
        return tl.inline_asm_elementwise(
            "{ .reg .pred p; .reg .u32 t; mov.u32 $0,$1;"
            " shfl.sync.up.b32 t|p,$0,1,0,-1; @p add.u32 $0,$0,t;"
            " shfl.sync.up.b32 t|p,$0,2,0,-1; @p add.u32 $0,$0,t;"
            " shfl.sync.up.b32 t|p,$0,4,0,-1; @p add.u32 $0,$0,t;"
            " shfl.sync.up.b32 t|p,$0,8,0,-1; @p add.u32 $0,$0,t;"
            " shfl.sync.up.b32 t|p,$0,16,0,-1; @p add.u32 $0,$0,t; }",
            "=&r,r",
            [values],
            dtype=tl.int32,
            is_pure=True,
            pack=1,
        )
    else:
        WARPS: tl.constexpr = values.shape[0] // 32
        return tl.reshape(tl.cumsum(tl.reshape(values, [WARPS, 32]), 1), [WARPS * 32])


@triton.jit
def warp_take(words: Any, lanes: Any, ASM: tl.constexpr) -> Any:
    """Each lane receives the word of lane `lanes & 31` of its own warp."""
    if ASM:
        return tl.inline_asm_elementwise(
            "shfl.sync.idx.b32 $0,$1,$2,31,-1;",
            "=r,r,r",
            [words, lanes],
            dtype=tl.uint32,
            is_pure=True,
            pack=1,
        )
    else:
        WARPS: tl.constexpr = words.shape[0] // 32
        chosen = tl.reshape(lanes & 31, [WARPS, 32, 1]) == tl.arange(0, 32)[None, None, :]
        picked = tl.where(chosen, tl.reshape(words, [WARPS, 1, 32]), 0)
        return tl.reshape(tl.sum(picked, 2), [WARPS * 32])


@triton.jit
def funnel_left(high: Any, low: Any, shift: Any, ASM: tl.constexpr) -> Any:
    """Upper word of (high:low) << (shift & 31)."""
    if ASM:
        return tl.inline_asm_elementwise(
            "shf.l.wrap.b32 $0,$1,$2,$3;",
            "=r,r,r,r",
            [low, high, shift],
            dtype=tl.uint32,
            is_pure=True,
            pack=1,
        )
    else:
        by = (shift & 31).to(tl.uint32)
        return (high << by) | ((low >> 1) >> (31 - by))
