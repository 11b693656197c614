"""What kernels write of a chunk of an input: its values as integers, their digits, and what products need
beside them.
"""

# Triton's tuples grow by `+` alone.
# ruff: noqa: RUF005
# mypy: disable-error-code="assignment, misc"

from __future__ import annotations

from enum import IntFlag
from typing import Any

import triton
import triton.language as tl

from kernels.gpu.primitives import store_float, store_word

CHUNK = 1024


class Extras(IntFlag):
    """What products need of an input beside digits and scales: see `prepare.Prepared`."""

    NOTHING = 0
    GROUP_SUMS = 1
    DIGIT_SUMS = 2
    VALUES = 4
    ALL = 7


_GROUP_SUMS = tl.constexpr(int(Extras.GROUP_SUMS))
_DIGIT_SUMS = tl.constexpr(int(Extras.DIGIT_SUMS))
_VALUES = tl.constexpr(int(Extras.VALUES))


@triton.jit
def chunk_extent(value: tl.tensor) -> Any:
    """The largest magnitude of a chunk's values; and 0, or NaN if a value is not finite."""
    bits = tl.max(tl.abs(value).to(tl.int32, bitcast=True), 0)
    return bits.to(tl.float32, bitcast=True), tl.where(bits < 0x7F800000, 0.0, float("nan"))


@triton.jit
def _power_of_two(exponent: tl.tensor) -> Any:
    """2^exponent for an int32 exponent in -126 .. 127, exactly."""
    return ((exponent + 127) << 23).to(tl.float32, bitcast=True)


@triton.jit
def whole_numbers(value: tl.tensor, largest: tl.tensor) -> Any:
    """Values as integers of 30 bits and sign times a scale that suits their largest magnitude, and it.

    The scale is a power of two, so that scaling is exact; 2^-60 keeps it in range for a row of zeros.
    """
    exponent = ((tl.maximum(largest, 8.7e-19).to(tl.int32, bitcast=True) >> 23) & 0xFF) - 126
    scaled = value * _power_of_two(30 - exponent)
    # From 2^22 on, adding a half would round; such values are rounded well enough by the conversion.
    number = tl.where(tl.abs(scaled) < 4194304.0, tl.floor(scaled + 0.5), scaled).to(tl.int32)
    return number, _power_of_two(exponent - 30)


@triton.jit
def _store_digit(digits: tl.tensor, word: tl.tensor, value: tl.tensor, ASM: tl.constexpr) -> None:
    """Write one signed byte of every column: four bytes a word, columns 2 i of a run of eight, then 2 i +
    1.
    """
    shifts = (8 * tl.arange(0, 4))[None, :, None]
    packed = tl.sum((tl.reshape(value, [128, 4, 2]) & 0xFF) << shifts, 1)
    store_word(digits + word, packed, packed * 0 + 1, ASM)


@triton.jit
def _store_digits(
    number: tl.tensor,
    digits: tl.tensor,
    chunk: tl.tensor,
    m: tl.tensor,
    BATCH: tl.constexpr,
    ASM: tl.constexpr,
) -> Any:
    """Write the four digits of a chunk's integers in fragment order; and them, one after the other."""
    # Words of a step and vector: [digit, half h, quarter c, run j]; line = 16 step + 4 c + j.
    line = tl.arange(0, 128)[:, None]
    half = tl.arange(0, 2)[None, :]
    word = ((chunk * 8 + line // 16) * BATCH + m) * 128 + half * 16 + line % 16
    parts = ()
    for digit in tl.static_range(4):
        low = number
        if digit < 3:
            low = ((number + 128) & 255) - 128
        _store_digit(digits, word + digit * 32, low, ASM)
        number = (number - low) >> 8
        parts = parts + (low,)
    return parts


@triton.jit
def _store_digit_sums(
    parts: tl.tuple, digit_sums: tl.tensor, BY_CHUNK: tl.constexpr, ASM: tl.constexpr
) -> None:
    """Sums of each digit: over each of the chunk's 8 steps, or (not BY_CHUNK) over all of it."""
    # Summed together, for every sum of its own would cost two barriers: [i, j] is of digit i + 2 j.
    joined = tl.join(tl.join(parts[0], parts[1]), tl.join(parts[2], parts[3]))
    digit = tl.arange(0, 2)[:, None] + 2 * tl.arange(0, 2)[None, :]
    if BY_CHUNK:
        sums = tl.sum(tl.reshape(joined, [8, 128, 2, 2]), 1)
        at = digit[None, :, :] * 8 + tl.arange(0, 8)[:, None, None]
        store_word(digit_sums + at, sums, sums * 0 + 1, ASM)
    else:
        total = tl.sum(joined, 0)
        store_word(digit_sums + digit, total, total * 0 + 1, ASM)


@triton.jit
def _store_group_sums(number: tl.tensor, scale: tl.tensor, group_sums: tl.tensor, ASM: tl.constexpr) -> None:
    """Sums of 8 groups of 128: those of the upper and lower bits are exact, and rounded together once."""
    high = tl.sum(tl.reshape(number >> 15, [8, 128]), 1).to(tl.float32)
    low = tl.sum(tl.reshape(number & 32767, [8, 128]), 1).to(tl.float32)
    at = tl.arange(0, 8)
    store_float(group_sums + at, (high * 32768.0 + low) * scale, at * 0 + 1, ASM)


@triton.jit
def store_chunk(
    number: tl.tensor,
    scale: tl.tensor,
    targets: tl.tuple,
    chunk: tl.tensor,
    m: tl.tensor,
    chunks: tl.tensor,
    EXTRAS: tl.constexpr,
    BY_CHUNK: tl.constexpr,
    BATCH: tl.constexpr,
    ASM: tl.constexpr,
) -> None:
    """Digits of a chunk's integers of vector m, and those of its EXTRAS that are wanted.

    `targets`: digits, digit_sums, group_sums and gathered of a `Prepared`.
    """
    digits, digit_sums, group_sums, gathered = targets
    at = m * chunks + chunk
    parts = _store_digits(number, digits, chunk, m, BATCH, ASM)
    if _DIGIT_SUMS & EXTRAS:
        _store_digit_sums(parts, digit_sums + at * (32 if BY_CHUNK else 4), BY_CHUNK, ASM)
    if _GROUP_SUMS & EXTRAS:
        _store_group_sums(number, scale, group_sums + at * 8, ASM)
    if _VALUES & EXTRAS:
        column = chunk * number.shape[0] + tl.arange(0, number.shape[0])
        store_float(gathered + column * BATCH + m, number.to(tl.float32) * scale, column * 0 + 1, ASM)
