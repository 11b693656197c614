"""The kernel that turns an activation into fixed-point digits in fragment order, with its prologues fused
in.
"""

# A constexpr `if` must stand by itself.
# ruff: noqa: SIM102
# mypy: disable-error-code="assignment, misc"

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from kernels.gpu.activation import activation, activation_bound, inverse_rms
from kernels.gpu.chaining import follow
from kernels.gpu.dec.selection_kernel import finish_selection, select_program
from kernels.gpu.digits import chunk_extent, store_chunk, whole_numbers


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
        common = inverse_rms(tl.sum(squares, 0), columns, eps)
    bits = tl.max(largest, 0)
    # Squares may overflow where no value does: then the factor alone is no number.
    poison = tl.where(bits < 0x7F800000, 0.0, float("nan")) + 0.0 * common
    return bits.to(tl.float32, bitcast=True) * common, common, poison


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
    EXTRAS: tl.constexpr,
    BY_CHUNK: tl.constexpr,
    BATCH: tl.constexpr,
    USED: tl.constexpr,
    CHUNK: tl.constexpr,
    BLOCK: tl.constexpr,
    ASM: tl.constexpr,
) -> None:
    """Digits of one chunk; the first chunk's program also tells what holds for the whole vector."""
    x, other, factors, order = sources
    x_scale, squares = targets[4], targets[5]
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
    store_chunk(number, scale, targets[:4], chunk, m, chunks, EXTRAS, BY_CHUNK, BATCH, ASM)
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
    FACTORS: tl.constexpr, ORDERED: tl.constexpr, SELECT: tl.constexpr, EXTRAS: tl.constexpr,
    BY_CHUNK: tl.constexpr, BATCH: tl.constexpr, USED: tl.constexpr, CHUNK: tl.constexpr, BLOCK: tl.constexpr,
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
            sources, targets, selection, sizes, program, m, PROLOGUE, FACTORS, ORDERED, SELECT, EXTRAS,
            BY_CHUNK, BATCH, USED, CHUNK, BLOCK, ASM,
        )  # fmt: skip
