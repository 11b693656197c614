"""The kernel that turns an activation into fixed-point digits in fragment order, with its prologues fused
in.
"""

# Triton's tuples grow by `+` alone.
# ruff: noqa: RUF005, SIM102
# mypy: disable-error-code="assignment, misc"

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from kernels.gpu.activation import activation, activation_bound
from kernels.gpu.chaining import follow
from kernels.gpu.dec.selection_kernel import finish_selection, select_program
from kernels.gpu.primitives import store_float, store_word

CHUNK = 1024


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
    """A bound of |value| in the whole row, at most twice the largest; the factor common to all, 1 or 1 / rms;
    and 0, or NaN if a value is not finite.

    Magnitudes are compared by their bits: those of what is not finite are the largest.
    """
    largest = tl.zeros([BLOCK], tl.int32)
    squares = tl.zeros([BLOCK], tl.float32)
    for first in range(0, columns, BLOCK):
        at = first + tl.arange(0, BLOCK)
        bound, raw = activation_bound(x, other, factors, at, at < columns, PROLOGUE, FACTORS)
        largest = tl.maximum(largest, bound.to(tl.int32, bitcast=True))
        if PROLOGUE == 1:
            squares += raw * raw
    common = 1.0
    if PROLOGUE == 1:
        common = 1.0 / tl.sqrt(tl.sum(squares, 0) / columns + eps)
    bits = tl.max(largest, 0)
    poison = tl.where(bits < 0x7F800000, 0.0, float("nan"))
    return bits.to(tl.float32, bitcast=True) * common, common, poison


@triton.jit
def chunk_extent(value: tl.tensor) -> Any:
    """The largest magnitude of a chunk's values; and 0, or NaN if a value is not finite."""
    bits = tl.max(tl.abs(value).to(tl.int32, bitcast=True), 0)
    return bits.to(tl.float32, bitcast=True), tl.where(bits < 0x7F800000, 0.0, float("nan"))


@triton.jit
def _finish_program(
    selection: tl.tuple,
    x: tl.tensor,
    other: tl.tensor,
    factors: tl.tensor,
    columns: tl.tensor,
    eps: tl.tensor,
    PROLOGUE: tl.constexpr,
    FACTORS: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    """What a selection has to know of the whole vector, where programs know their chunks alone."""
    wanted = tl.load(selection[0])
    refused = tl.load(selection[0] + 2)
    _, common, poison = _row_extent(x, other, factors, columns, eps, PROLOGUE, FACTORS, BLOCK)
    finish_selection(selection, wanted, refused, common, poison)


@triton.jit
def _power_of_two(exponent: tl.tensor) -> Any:
    """2^exponent for an int32 exponent in -126 .. 127, exactly."""
    return ((exponent + 127) << 23).to(tl.float32, bitcast=True)


@triton.jit
def _store_digit(digits: tl.tensor, word: tl.tensor, value: tl.tensor, ASM: tl.constexpr) -> None:
    """Write one signed byte of every column: four bytes a word, columns 2 i of a run of eight, then 2 i +
    1.
    """
    shifts = (8 * tl.arange(0, 4))[None, :, None]
    packed = tl.sum((tl.reshape(value, [128, 4, 2]) & 0xFF) << shifts, 1)
    store_word(digits + word, packed, packed * 0 + 1, ASM)


@triton.jit
def store_digits(
    number: tl.tensor,
    digits: tl.tensor,
    digit_sums: tl.tensor,
    chunk: tl.tensor,
    m: tl.tensor,
    SUMS: tl.constexpr,
    BATCH: tl.constexpr,
    ASM: tl.constexpr,
) -> None:
    """The four digits of a chunk's integers in fragment order, and their sums at `digit_sums` (SUMS)."""
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
    if SUMS:
        # Summed together, for every sum of its own would cost two barriers: sums[i, j] is of digit i + 2 j.
        sums = tl.sum(tl.join(tl.join(parts[0], parts[1]), tl.join(parts[2], parts[3])), 0)
        at = tl.arange(0, 2)[:, None] + 2 * tl.arange(0, 2)[None, :]
        store_word(digit_sums + at, sums, sums * 0 + 1, ASM)


@triton.jit
def store_group_sums(number: tl.tensor, scale: tl.tensor, group_sums: tl.tensor, ASM: tl.constexpr) -> None:
    """Sums of 8 groups of 128: those of the upper and lower bits are exact, and rounded together once."""
    high = tl.sum(tl.reshape(number >> 15, [8, 128]), 1).to(tl.float32)
    low = tl.sum(tl.reshape(number & 32767, [8, 128]), 1).to(tl.float32)
    at = tl.arange(0, 8)
    store_float(group_sums + at, (high * 32768.0 + low) * scale, at * 0 + 1, ASM)


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
def _prepare_chunk(
    sources: tl.tuple,
    targets: tl.tuple,
    selection: tl.tuple,
    sizes: tl.tuple,
    chunk: tl.tensor,
    m: tl.tensor,
    PROLOGUE: tl.constexpr,
    FACTORS: tl.constexpr,
    ORDERED: tl.constexpr,
    SELECT: tl.constexpr,
    BY_CHUNK: tl.constexpr,
    BATCH: tl.constexpr,
    USED: tl.constexpr,
    CHUNK: tl.constexpr,
    BLOCK: tl.constexpr,
    ASM: tl.constexpr,
) -> None:
    """Digits of one chunk; the first chunk's program also tells what holds for the whole vector."""
    x, other, factors, order = sources
    digits, digit_sums, group_sums, gathered, x_scale, squares = targets
    columns, chunks, eps = sizes
    if SELECT and not BY_CHUNK:
        wanted = tl.load(selection[0])
        refused = tl.load(selection[0] + 2)
    column = chunk * CHUNK + tl.arange(0, CHUNK)
    inside = column < tl.where(m < USED, columns, 0)
    # Read before the row's extent, for nothing is read past its barriers until they are passed.
    source = column
    if ORDERED:
        source = tl.load(order + column, mask=inside, other=0)
    value, raw = activation(x, other, factors, source, inside, PROLOGUE, FACTORS)
    if BY_CHUNK:
        largest, poison = chunk_extent(value)
        common = 1.0
        if PROLOGUE == 1:
            tl.store(squares + m * chunks + chunk, tl.sum(raw * raw, 0))
    else:
        largest, common, poison = _row_extent(x, other, factors, columns, eps, PROLOGUE, FACTORS, BLOCK)
    number, scale = whole_numbers(value * common, largest)
    if not BY_CHUNK:
        store_float(gathered + column * BATCH + m, number.to(tl.float32) * scale, column * 0 + 1, ASM)
    store_digits(number, digits, digit_sums + (m * chunks + chunk) * 4, chunk, m, not BY_CHUNK, BATCH, ASM)
    store_group_sums(number, scale, group_sums + (m * chunks + chunk) * 8, ASM)
    if BY_CHUNK:
        tl.store(x_scale + m * chunks + chunk, scale + poison)
    elif chunk == 0:
        tl.store(x_scale + m, scale + poison)
        if SELECT:
            finish_selection(selection, wanted, refused, common, poison)


# fmt: off
@triton.jit
def prepare_kernel(
    x: tl.tensor, other: tl.tensor, factors: tl.tensor, order: tl.tensor, digits: tl.tensor,
    digit_sums: tl.tensor, group_sums: tl.tensor, gathered: tl.tensor, x_scale: tl.tensor,
    squares: tl.tensor, control: tl.tensor, channels: tl.tensor, values: tl.tensor, common: tl.tensor,
    columns: tl.tensor, chunks: tl.tensor, selecting: tl.tensor, eps: tl.tensor, PROLOGUE: tl.constexpr,
    FACTORS: tl.constexpr, ORDERED: tl.constexpr, SELECT: tl.constexpr, BY_CHUNK: tl.constexpr,
    BATCH: tl.constexpr, USED: tl.constexpr, CHUNK: tl.constexpr, BLOCK: tl.constexpr,
    CHAINED: tl.constexpr, ASM: tl.constexpr,
) -> None:
    # fmt: on
    """Digits of vector program_id(1), columns of chunk program_id(0); see `prepare.prepare`.

    With SELECT there are `selecting` programs before, which choose the channels to correct, a chunk each;
    with BY_CHUNK too, one after all others for what concerns the whole vector.
    """
    program = tl.program_id(0)
    m = tl.program_id(1)
    follow(CHAINED)
    row = tl.minimum(m, USED - 1).to(tl.int64) * columns
    x += row
    if PROLOGUE >= 2:
        other += row
    targets = (digits, digit_sums, group_sums, gathered, x_scale, squares)
    selection = (control, channels, values, common)
    if SELECT:
        # First the longer work.
        program -= selecting
        if program < 0:
            chunk = program + selecting
            select_program(selection, x, other, factors, columns, chunk, PROLOGUE, FACTORS, CHUNK, ASM)
    if SELECT and BY_CHUNK:
        if program == chunks:
            _finish_program(selection, x, other, factors, columns, eps, PROLOGUE, FACTORS, BLOCK)
    if (program >= 0) & (program < chunks):
        sources = (x, other, factors, order)
        sizes = (columns, chunks, eps)
        _prepare_chunk(
            sources, targets, selection, sizes, program, m, PROLOGUE, FACTORS, ORDERED, SELECT, BY_CHUNK,
            BATCH, USED, CHUNK, BLOCK, ASM,
        )  # fmt: skip
