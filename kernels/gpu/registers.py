"""Decoding a lane's words into 8 registers of 4 one-byte codes; `fields.PIECES` says which bit lies where.

A word is decoded four codes at a time. For widths 2 to 4 the odd registers come out multiplied by 2^width,
which costs nothing: the odd registers are one half of the mma operand, and its result is divided once.
"""

# A return under a constexpr `if` needs its `else` in triton, and its tuples grow by `+` alone.
# ruff: noqa: RET505, RUF005
# mypy: disable-error-code="assignment, misc"

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from kernels.gpu.ordered_loads import ordered_stream1, ordered_stream2, ordered_stream4
from kernels.gpu.primitives import stream_words1, stream_words2, stream_words4


@triton.jit
def lane_words(
    pointer: tl.tensor,
    lane: tl.tensor,
    COUNT: tl.constexpr,
    ASM: tl.constexpr,
    ORDERED: tl.constexpr = False,
) -> Any:
    """Tuple of the COUNT words of each lane, stored as runs of four words a lane, then two, then one.

    ORDERED: by loads that no wait is moved before (`ordered_loads`).
    """
    words = ()
    for run in tl.static_range(COUNT // 4):
        at = pointer + run * 128 + lane * 4
        words = words + (ordered_stream4(at, ASM) if ORDERED else stream_words4(at, ASM))
    if COUNT % 4 >= 2:
        at = pointer + (COUNT // 4) * 128 + lane * 2
        words = words + (ordered_stream2(at, ASM) if ORDERED else stream_words2(at, ASM))
    if COUNT % 2 == 1:
        at = pointer + (COUNT - 1) * 32 + lane
        words = words + (ordered_stream1(at, ASM) if ORDERED else stream_words1(at, ASM),)
    return words


@triton.jit
def step_registers(words: tl.tensor, FIRST: tl.constexpr, WIDTH: tl.constexpr) -> Any:
    """The 8 registers of the step whose WIDTH words begin at words[FIRST]."""
    if WIDTH == 2:
        return _registers2(words[FIRST], words[FIRST + 1])
    elif WIDTH == 3:
        return _registers3(words[FIRST], words[FIRST + 1], words[FIRST + 2])
    elif WIDTH == 4:
        return _registers4(words[FIRST], words[FIRST + 1], words[FIRST + 2], words[FIRST + 3])
    elif WIDTH == 5:
        return _registers5(
            words[FIRST], words[FIRST + 1], words[FIRST + 2], words[FIRST + 3], words[FIRST + 4]
        )
    elif WIDTH == 6:
        return _registers6(words, FIRST)
    elif WIDTH == 7:
        return _registers7(words, FIRST)
    else:
        registers = ()
        for r in tl.static_range(8):
            registers = registers + (words[FIRST + r],)
        return registers


@triton.jit
def _registers2(w0: tl.tensor, w1: tl.tensor) -> Any:
    high0 = w0 >> 4
    high1 = w1 >> 4
    return (
        w0 & 0x03030303,
        w0 & 0x0C0C0C0C,
        high0 & 0x03030303,
        high0 & 0x0C0C0C0C,
        w1 & 0x03030303,
        w1 & 0x0C0C0C0C,
        high1 & 0x03030303,
        high1 & 0x0C0C0C0C,
    )


@triton.jit
def _registers3(w0: tl.tensor, w1: tl.tensor, w2: tl.tensor) -> Any:
    spare = (((w0 >> 6) & 0x03030303) | ((w1 >> 4) & 0x0C0C0C0C)) | ((w2 >> 2) & 0x30303030)
    return (
        w0 & 0x07070707,
        w0 & 0x38383838,
        w1 & 0x07070707,
        w1 & 0x38383838,
        w2 & 0x07070707,
        w2 & 0x38383838,
        spare & 0x07070707,
        spare & 0x38383838,
    )


@triton.jit
def _registers4(w0: tl.tensor, w1: tl.tensor, w2: tl.tensor, w3: tl.tensor) -> Any:
    return (
        w0 & 0x0F0F0F0F,
        w0 & 0xF0F0F0F0,
        w1 & 0x0F0F0F0F,
        w1 & 0xF0F0F0F0,
        w2 & 0x0F0F0F0F,
        w2 & 0xF0F0F0F0,
        w3 & 0x0F0F0F0F,
        w3 & 0xF0F0F0F0,
    )


@triton.jit
def _registers5(w0: tl.tensor, w1: tl.tensor, w2: tl.tensor, w3: tl.tensor, w4: tl.tensor) -> Any:
    return (
        w0 & 0x1F1F1F1F,
        w1 & 0x1F1F1F1F,
        w2 & 0x1F1F1F1F,
        w3 & 0x1F1F1F1F,
        w4 & 0x1F1F1F1F,
        ((w0 >> 5) & 0x07070707) | ((w1 >> 2) & 0x18181818),
        ((w2 >> 5) & 0x07070707) | ((w3 >> 2) & 0x18181818),
        (((w4 >> 5) & 0x07070707) | ((w1 >> 4) & 0x08080808)) | ((w3 >> 3) & 0x10101010),
    )


@triton.jit
def _registers6(words: tl.tensor, FIRST: tl.constexpr) -> Any:
    registers = ()
    for r in tl.static_range(6):
        registers = registers + (words[FIRST + r] & 0x3F3F3F3F,)
    for r in tl.static_range(2):
        low = ((words[FIRST + 3 * r] >> 6) & 0x03030303) | ((words[FIRST + 3 * r + 1] >> 4) & 0x0C0C0C0C)
        registers = registers + (low | ((words[FIRST + 3 * r + 2] >> 2) & 0x30303030),)
    return registers


@triton.jit
def _registers7(words: tl.tensor, FIRST: tl.constexpr) -> Any:
    registers = ()
    last = (words[FIRST] >> 7) & 0x01010101
    for r in tl.static_range(7):
        registers = registers + (words[FIRST + r] & 0x7F7F7F7F,)
        if r > 0:
            last = last | ((words[FIRST + r] >> (7 - r)) & (0x01010101 << r))
    return registers + (last,)


@triton.jit
def plain_registers(words: tl.tensor, FIRST: tl.constexpr, WIDTH: tl.constexpr) -> Any:
    """As `step_registers`, the odd registers divided by 2^width again."""
    scaled = step_registers(words, FIRST, WIDTH)
    registers = ()
    for r in tl.static_range(8):
        if r % 2 == 1 and WIDTH <= 4:
            registers = registers + (scaled[r] >> WIDTH,)
        else:
            registers = registers + (scaled[r],)
    return registers
