"""Loads that stay on their side of a wait for other kernels or programs.

Loads of what never changes (`ld.global.nc`, as in `primitives`) may be moved to either side, by the assembler
too: digits before the wait, where they are not there yet, weights after it, where they come too late.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from kernels.gpu.primitives import load_words1, load_words2, load_words4

_INPUT4 = tl.constexpr("ld.global.v4.u32 {$0,$1,$2,$3},[$4];")
_INPUT1 = tl.constexpr("ld.global.u32 $0,[$1];")
_STREAM4 = tl.constexpr("ld.global.L1::no_allocate.v4.u32 {$0,$1,$2,$3},[$4];")
_STREAM2 = tl.constexpr("ld.global.L1::no_allocate.v2.u32 {$0,$1},[$2];")
_STREAM1 = tl.constexpr("ld.global.L1::no_allocate.u32 $0,[$1];")


@triton.jit
def ordered_stream4(pointers: tl.tensor, ASM: tl.constexpr) -> Any:
    """As `stream_words4`."""
    return load_words4(pointers, _STREAM4, ASM)


@triton.jit
def ordered_stream2(pointers: tl.tensor, ASM: tl.constexpr) -> Any:
    """As `stream_words2`."""
    return load_words2(pointers, _STREAM2, ASM)


@triton.jit
def ordered_stream1(pointers: tl.tensor, ASM: tl.constexpr) -> Any:
    """As `stream_words1`."""
    return load_words1(pointers, _STREAM1, ASM)


@triton.jit
def ordered_input4(pointers: tl.tensor, ASM: tl.constexpr) -> Any:
    """As `load_shared_input4`."""
    return load_words4(pointers, _INPUT4, ASM)


@triton.jit
def ordered_input1(pointers: tl.tensor, ASM: tl.constexpr) -> Any:
    """As `ordered_input4`, one word, int32.

    Compiling takes longer than linearly in the number of `tl.load`s: this is for what is read in the code of
    every form that a group can have.
    """
    return load_words1(pointers, _INPUT1, ASM).to(tl.int32, bitcast=True)
