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

from kernels.gpu.tensor_cores import mma as mma


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


# Loads by how they may be moved and kept: of what never changes (nc), once (no_allocate) or by many warps.
_INPUT4 = tl.constexpr("ld.global.nc.v4.u32 {$0,$1,$2,$3},[$4];")
_STREAM4 = tl.constexpr("ld.global.nc.L1::no_allocate.v4.u32 {$0,$1,$2,$3},[$4];")
_STREAM2 = tl.constexpr("ld.global.nc.L1::no_allocate.v2.u32 {$0,$1},[$2];")
_STREAM1 = tl.constexpr("ld.global.nc.L1::no_allocate.u32 $0,[$1];")


@triton.jit
def load_words4(pointers: tl.tensor, CODE: tl.constexpr, ASM: tl.constexpr) -> Any:
    """Four consecutive words, 16-byte aligned, by the instruction CODE."""
    if ASM:
        return tl.inline_asm_elementwise(
            CODE,
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
def load_words2(pointers: tl.tensor, CODE: tl.constexpr, ASM: tl.constexpr) -> Any:
    """Two consecutive words, 8-byte aligned, by the instruction CODE."""
    if ASM:
        return tl.inline_asm_elementwise(
            CODE, "=r,=r,l", [pointers], dtype=(tl.uint32, tl.uint32), is_pure=True, pack=1
        )
    else:
        return load_words1(pointers, CODE, False), load_words1(pointers + 1, CODE, False)


@triton.jit
def load_words1(pointers: tl.tensor, CODE: tl.constexpr, ASM: tl.constexpr) -> Any:
    """One word by the instruction CODE."""
    if ASM:
        return tl.inline_asm_elementwise(CODE, "=r,l", [pointers], dtype=tl.uint32, is_pure=True, pack=1)
    else:
        return tl.load(pointers).to(tl.uint32, bitcast=True)


@triton.jit
def load_shared_input4(pointers: tl.tensor, ASM: tl.constexpr) -> Any:
    """Four consecutive words, 16-byte aligned, of an input that many warps read (kept in L1)."""
    return load_words4(pointers, _INPUT4, ASM)


@triton.jit
def stream_words4(pointers: tl.tensor, ASM: tl.constexpr) -> Any:
    """Four consecutive words, 16-byte aligned, read once (kept out of L1)."""
    return load_words4(pointers, _STREAM4, ASM)


@triton.jit
def stream_words2(pointers: tl.tensor, ASM: tl.constexpr) -> Any:
    """Two consecutive words, 8-byte aligned, read once (kept out of L1)."""
    return load_words2(pointers, _STREAM2, ASM)


@triton.jit
def stream_words1(pointers: tl.tensor, ASM: tl.constexpr) -> Any:
    """One word, read once (kept out of L1)."""
    return load_words1(pointers, _STREAM1, ASM)


@triton.jit
def store_words4(
    pointers: tl.tensor,
    w0: tl.tensor,
    w1: tl.tensor,
    w2: tl.tensor,
    w3: tl.tensor,
    mask: tl.tensor,
    ASM: tl.constexpr,
) -> None:
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
def store_word(pointers: tl.tensor, word: tl.tensor, mask: tl.tensor, ASM: tl.constexpr) -> None:
    """Store one word where `mask` (int32) is not 0, from the threads that have it.

    `tl.store` would first hand values around through shared memory to write in order, which costs barriers;
    threads that have the same element all write it here.
    """
    if ASM:
        tl.inline_asm_elementwise(
            "{ .reg .pred p; setp.ne.s32 p,$3,0; @p st.global.u32 [$1],$2; mov.u32 $0,0; }",
            "=r,l,r,r",
            [pointers, word, mask],
            dtype=tl.uint32,
            is_pure=False,
            pack=1,
        )
    else:
        tl.store(pointers, word.to(tl.int32, bitcast=True), mask=mask != 0)


@triton.jit
def store_float(pointers: tl.tensor, value: tl.tensor, mask: tl.tensor, ASM: tl.constexpr) -> None:
    """As `store_word`, of float32."""
    words = pointers.to(tl.pointer_type(tl.int32), bitcast=True)
    store_word(words, value.to(tl.uint32, bitcast=True), mask, ASM)


@triton.jit
def popc(words: tl.tensor, ASM: tl.constexpr) -> Any:
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
def warp_scan(values: tl.tensor, ASM: tl.constexpr) -> Any:
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
def warp_take(words: tl.tensor, lanes: tl.tensor, ASM: tl.constexpr) -> Any:
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
def funnel_left(high: tl.tensor, low: tl.tensor, shift: tl.tensor, ASM: tl.constexpr) -> Any:
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
        by = low * 0 + (shift & 31)
        return (high << by) | ((low >> 1) >> (31 - by))
