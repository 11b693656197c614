"""The kernel that turns an activation into fixed-point digits in fragment order, with its prologues fused
in.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

CHUNK = 1024


@triton.jit
def _activation(
    x: tl.tensor, other: tl.tensor, at: tl.tensor, inside: tl.tensor, PROLOGUE: tl.constexpr
) -> Any:
    """float32 values at `at` before any common factor: x, x * norm weight, or silu(x) * other."""
    value = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
    if PROLOGUE == 1:
        value *= tl.load(other + at, mask=inside, other=0.0).to(tl.float32)
    elif PROLOGUE == 2:
        value = value / (1.0 + tl.exp(-value)) * tl.load(other + at, mask=inside, other=0.0).to(tl.float32)
    return value


@triton.jit
def _row_extent(
    x: tl.tensor,
    other: tl.tensor,
    factors: tl.tensor,
    columns: tl.tensor,
    eps: tl.tensor,
    PROLOGUE: tl.constexpr,
    FACTORS: tl.constexpr,
    BLOCK: tl.constexpr,
) -> Any:
    """max |value| of the whole row (not finite if any is not), and the factor common to all: 1 or 1 / rms."""
    largest = tl.zeros([BLOCK], tl.float32)
    squares = tl.zeros([BLOCK], tl.float32)
    poison = tl.zeros([BLOCK], tl.float32)
    for first in range(0, columns, BLOCK):
        at = first + tl.arange(0, BLOCK)
        inside = at < columns
        value = _activation(x, other, at, inside, PROLOGUE)
        if PROLOGUE == 1:
            raw = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
            squares += raw * raw
        if FACTORS:
            value *= tl.load(factors + at, mask=inside, other=0.0)
        largest = tl.maximum(largest, tl.abs(value))
        poison += value * 0.0
    common = 1.0
    if PROLOGUE == 1:
        common = 1.0 / tl.sqrt(tl.sum(squares, 0) / columns + eps)
    return tl.max(largest, 0) * common, common, tl.sum(poison, 0)


@triton.jit
def _power_of_two(exponent: tl.tensor) -> Any:
    """2^exponent for an int32 exponent in -126 .. 127, exactly."""
    return ((exponent + 127) << 23).to(tl.float32, bitcast=True)


@triton.jit
def _store_digit(digits: tl.tensor, word: tl.tensor, value: tl.tensor) -> None:
    """Write one signed byte of every column: four bytes a word, columns 2 i of a run of eight, then 2 i +
    1.
    """
    shifts = (8 * tl.arange(0, 4))[None, :, None]
    packed = tl.sum((tl.reshape(value, [128, 4, 2]) & 0xFF) << shifts, 1)
    tl.store(digits + word, packed)


@triton.jit
def prepare_kernel(
    x: tl.tensor,
    other: tl.tensor,
    factors: tl.tensor,
    order: tl.tensor,
    digits: tl.tensor,
    digit_sums: tl.tensor,
    gathered: tl.tensor,
    x_scale: tl.tensor,
    columns: tl.tensor,
    chunks: tl.tensor,
    eps: tl.tensor,
    PROLOGUE: tl.constexpr,
    FACTORS: tl.constexpr,
    ORDERED: tl.constexpr,
    BATCH: tl.constexpr,
    USED: tl.constexpr,
    CHUNK: tl.constexpr,
    BLOCK: tl.constexpr,
    ASM: tl.constexpr,
) -> None:
    """Digits of vector program_id(1), columns of chunk program_id(0); see `prepare.prepare`."""
    chunk = tl.program_id(0)
    m = tl.program_id(1)
    column = chunk * CHUNK + tl.arange(0, CHUNK)
    inside = column < tl.where(m < USED, columns, 0)
    row = tl.minimum(m, USED - 1).to(tl.int64) * columns
    largest, common, poison = _row_extent(
        x + row, other + (row if PROLOGUE == 2 else 0), factors, columns, eps, PROLOGUE, FACTORS, BLOCK
    )
    # The scale is a power of two, so that scaling is exact; 2^-60 keeps it in range for a row of zeros.
    exponent = ((tl.maximum(largest, 8.7e-19).to(tl.int32, bitcast=True) >> 23) & 0xFF) - 126
    source = column
    if ORDERED:
        source = tl.load(order + column, mask=inside, other=0)
    value = _activation(x + row, other + (row if PROLOGUE == 2 else 0), source, inside, PROLOGUE) * common
    if FACTORS:
        value *= tl.load(factors + source, mask=inside, other=0.0)
    scaled = value * _power_of_two(30 - exponent)
    # From 2^22 on, adding a half would round; such values are rounded well enough by the conversion.
    number = tl.where(tl.abs(scaled) < 4194304.0, tl.floor(scaled + 0.5), scaled).to(tl.int32)
    tl.store(gathered + column * BATCH + m, number.to(tl.float32) * _power_of_two(exponent - 30))
    # Words of a step and vector: [digit, half h, quarter c, run j]; line = 16 step + 4 c + j.
    line = tl.arange(0, 128)[:, None]
    half = tl.arange(0, 2)[None, :]
    word = ((chunk * 8 + line // 16) * BATCH + m) * 128 + half * 16 + line % 16
    for digit in tl.static_range(4):
        low = number
        if digit < 3:
            low = ((number + 128) & 255) - 128
        _store_digit(digits, word + digit * 32, low)
        tl.store(digit_sums + (m * chunks + chunk) * 4 + digit, tl.sum(low, 0))
        number = (number - low) >> 8
    if chunk == 0:
        tl.store(x_scale + m, _power_of_two(exponent - 30) + poison)
