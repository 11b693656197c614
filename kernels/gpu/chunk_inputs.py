"""What products read of an input prepared by chunk beside its digits."""

# A return under a constexpr `if` needs its `else`: triton would compile what follows it as well.
# ruff: noqa: RET505
# mypy: disable-error-code="assignment, misc"

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from kernels.gpu.ordered_loads import ordered_input1, ordered_input4


@triton.jit
def input_float(pointers: tl.tensor, ASM: tl.constexpr) -> Any:
    """As `ordered_input1`, of float32."""
    return ordered_input1(pointers, ASM).to(tl.float32, bitcast=True)


@triton.jit
def digit_sum(
    digit_sums: tl.tensor, step: tl.tensor, lane: tl.tensor, STEPS: tl.constexpr, ASM: tl.constexpr
) -> Any:
    """Sums of a vector's digit lane % 4 in STEPS (1, 2 or 4) steps from `step` on, int32.

    The steps are of one chunk, and `step` is a multiple of STEPS.
    """
    at = digit_sums + (step // 8 * 32 + lane % 4 * 8 + step % 8)
    if STEPS == 4:
        s0, s1, s2, s3 = ordered_input4(at, ASM)
        return (s0 + s1 + (s2 + s3)).to(tl.int32, bitcast=True)
    elif STEPS == 2:
        return ordered_input1(at, ASM) + ordered_input1(at + 1, ASM)
    else:
        return ordered_input1(at, ASM)


@triton.jit
def digit_power(lane: tl.tensor) -> tl.tensor:
    """What digit lane % 4 counts, float32."""
    return tl.exp2((8 * (lane % 4)).to(tl.float32))


@triton.jit
def chunk_scale(
    x_scale: tl.tensor, step: tl.tensor, taken: tl.tensor, SHIFT: tl.constexpr, ASM: tl.constexpr
) -> Any:
    """What sums of digits, made 2^SHIFT too large, are multiplied with in the chunk of `step`.

    It is 0 where `taken` is not set: for warps that repeat what others have counted.
    """
    scale = tl.where(taken, input_float(x_scale + step // 8, ASM), 0.0)
    if SHIFT > 0:
        scale *= 1.0 / (1 << SHIFT)
    return scale
