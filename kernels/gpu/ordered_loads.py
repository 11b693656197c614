"""Loads that stay on their side of a wait for other kernels or programs.

Loads of what never changes (`ld.global.nc`, as in `primitives`) may be moved to either side, by the assembler
too: digits before the wait, where they are not there yet, weights after it, where they come too late.
"""

# A return under a constexpr `if` needs its `else`: triton would compile what follows it as well.
# ruff: noqa: RET505

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from kernels.gpu.primitives import load_shared_input4, stream_words1, stream_words2


@triton.jit
def ordered_stream4(pointers: tl.tensor, ASM: tl.constexpr) -> Any:
    """As `stream_words4`."""
    if ASM:
        return tl.inline_asm_elementwise(
            "ld.global.L1::no_allocate.v4.u32 {$0,$1,$2,$3},[$4];",
            "=r,=r,=r,=r,l",
            [pointers],
            dtype=(tl.uint32, tl.uint32, tl.uint32, tl.uint32),
            is_pure=True,
            pack=1,
        )
    else:
        return load_shared_input4(pointers, False)


@triton.jit
def ordered_stream2(pointers: tl.tensor, ASM: tl.constexpr) -> Any:
    """As `stream_words2`."""
    if ASM:
        return tl.inline_asm_elementwise(
            "ld.global.L1::no_allocate.v2.u32 {$0,$1},[$2];",
            "=r,=r,l",
            [pointers],
            dtype=(tl.uint32, tl.uint32),
            is_pure=True,
            pack=1,
        )
    else:
        return stream_words2(pointers, False)


@triton.jit
def ordered_stream1(pointers: tl.tensor, ASM: tl.constexpr) -> Any:
    """As `stream_words1`."""
    if ASM:
        return tl.inline_asm_elementwise(
            "ld.global.L1::no_allocate.u32 $0,[$1];",
            "=r,l",
            [pointers],
            dtype=tl.uint32,
            is_pure=True,
            pack=1,
        )
    else:
        return stream_words1(pointers, False)


@triton.jit
def ordered_input4(pointers: tl.tensor, ASM: tl.constexpr) -> Any:
    """As `load_shared_input4`."""
    if ASM:
        return tl.inline_asm_elementwise(
            "ld.global.v4.u32 {$0,$1,$2,$3},[$4];",
            "=r,=r,=r,=r,l",
            [pointers],
            dtype=(tl.uint32, tl.uint32, tl.uint32, tl.uint32),
            is_pure=True,
            pack=1,
        )
    else:
        return load_shared_input4(pointers, False)


@triton.jit
def ordered_input1(pointers: tl.tensor, ASM: tl.constexpr) -> Any:
    """As `ordered_input4`, one word, int32.

    Compiling takes longer than linearly in the number of `tl.load`s: this is for what is read in the code of
    every form that a group can have.
    """
    if ASM:
        return tl.inline_asm_elementwise(
            "ld.global.u32 $0,[$1];", "=r,l", [pointers], dtype=tl.int32, is_pure=True, pack=1
        )
    else:
        return tl.load(pointers).to(tl.int32, bitcast=True)
