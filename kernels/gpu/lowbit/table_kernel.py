"""The table product's kernel: a program looks up a group of 8 rows and multiplies it with up to 8 vectors."""

# Triton's tuples grow by `+` alone, and a constexpr `if` must stand by itself.
# ruff: noqa: RUF005
# mypy: disable-error-code="assignment, misc"

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from kernels.gpu.bitmap_primitives import byte_permute
from kernels.gpu.conversions import as_type
from kernels.gpu.lowbit.tables import FACTORS, SUPERSTEP
from kernels.gpu.primitives import load_shared_input4
from kernels.gpu.registers import lane_words
from kernels.gpu.tensor_cores import mma

_FACTOR3 = tl.constexpr(FACTORS[3])
_FACTOR4 = tl.constexpr(FACTORS[4])
_SUPERSTEP = tl.constexpr(SUPERSTEP)


@triton.jit
def _selectors(words: tl.tensor, FIRST: tl.constexpr, BITS: tl.constexpr) -> Any:
    """Of a step's eight registers the selectors, one code a nibble, in the lower half of each word."""
    if BITS == 3:
        w0, w1, w2 = words[FIRST], words[FIRST + 1], words[FIRST + 2]
        last = ((w0 >> 3) & 0x11111111) | ((w1 >> 2) & 0x22222222) | ((w2 >> 1) & 0x44444444)
        nibbles = (w0 & 0x77777777, w1 & 0x77777777, w2 & 0x77777777, last)
    else:
        nibbles = words[FIRST : FIRST + 4]
    selectors = ()
    for j in tl.static_range(4):
        selectors = selectors + (nibbles[j], nibbles[j] >> 16)
    return selectors


@triton.jit
def _bytes_of(
    selectors: tl.tuple, low: tl.tensor, high: tl.tensor, FLIP: tl.constexpr, ASM: tl.constexpr
) -> Any:
    """Eight registers of bytes from the eight-byte table (high:low); FLIP: for codes of 8 and more."""
    registers = ()
    for r in tl.static_range(8):
        registers = registers + (byte_permute(low, high, selectors[r] ^ FLIP, ASM),)
    return registers


@triton.jit
def _multiplied(r: tl.tuple, b: tl.tuple, c: tl.tuple, SIGNED: tl.constexpr, ASM: tl.constexpr) -> Any:
    """Accumulators c plus the products of a step's eight registers and four words of digits."""
    c = mma(r[0], r[1], r[2], r[3], b[0], b[1], c[0], c[1], c[2], c[3], SIGNED, ASM)
    return mma(r[4], r[5], r[6], r[7], b[2], b[3], c[0], c[1], c[2], c[3], SIGNED, ASM)


@triton.jit
def _add_step(
    sums: tl.tuple,
    selectors: tl.tuple,
    entries: tl.tuple,
    digits: tl.tensor,
    BITS: tl.constexpr,
    BATCH: tl.constexpr,
    ASM: tl.constexpr,
) -> Any:
    """Add one step to the accumulators: of every vector four of the high bytes, then four of the low."""
    if BITS == 3:
        high = _bytes_of(selectors, entries[0], entries[1], 0, ASM)
        low = _bytes_of(selectors, entries[2], entries[3], 0, ASM)
    else:
        high = _bytes_of(selectors, entries[0], entries[1], 0, ASM)
        low = _bytes_of(selectors, entries[4], entries[5], 0, ASM)
        upper_high = _bytes_of(selectors, entries[2], entries[3], 0x8888, ASM)
        upper_low = _bytes_of(selectors, entries[6], entries[7], 0x8888, ASM)
    added = ()
    for m in tl.static_range(BATCH):
        b = load_shared_input4(digits + m * 128, ASM)
        c = _multiplied(high, b, sums[8 * m : 8 * m + 4], True, ASM)
        d = _multiplied(low, b, sums[8 * m + 4 : 8 * m + 8], False, ASM)
        if BITS == 4:
            c = _multiplied(upper_high, b, c, True, ASM)
            d = _multiplied(upper_low, b, d, False, ASM)
        added = added + c + d
    return added


@triton.jit
def _add_steps(
    sums: tl.tuple,
    words: tl.tensor,
    entries: tl.tuple,
    digits: tl.tensor,
    lane: tl.tensor,
    STEPS: tl.constexpr,
    BITS: tl.constexpr,
    BATCH: tl.constexpr,
    ASM: tl.constexpr,
) -> Any:
    """Add STEPS steps, whose words and digits begin at the pointers."""
    loaded = lane_words(words, lane, STEPS * BITS, ASM)
    for s in tl.static_range(STEPS):
        selectors = _selectors(loaded, s * BITS, BITS)
        sums = _add_step(sums, selectors, entries, digits + s * (BATCH * 128) + lane * 4, BITS, BATCH, ASM)
    return sums


@triton.jit
def _sums(
    words: tl.tensor,
    entries: tl.tuple,
    digits: tl.tensor,
    lane: tl.tensor,
    warp: tl.tensor,
    whole: tl.tensor,
    tail: tl.tensor,
    BITS: tl.constexpr,
    BATCH: tl.constexpr,
    TAIL: tl.constexpr,
    WARPS: tl.constexpr,
    ASM: tl.constexpr,
) -> Any:
    """The lane's share of the sums of high and low bytes times digit lane % 4: 2 * BATCH int32.

    The warps take turns at supersteps; one that has none left repeats the last one with digits of zero, which
    follow the digits of the last step.
    """
    STEP: tl.constexpr = BATCH * 128
    steps = whole * _SUPERSTEP + tail
    sums = (lane * 0,) * (8 * BATCH)
    for first in range(0, whole, WARPS):
        at = tl.minimum(first + warp, whole - 1)
        step = tl.where(first + warp < whole, at * _SUPERSTEP, steps)
        part = words + at * (_SUPERSTEP * BITS * 32)
        sums = _add_steps(sums, part, entries, digits + step * STEP, lane, _SUPERSTEP, BITS, BATCH, ASM)
    if TAIL:
        for first in range(0, tail, WARPS):
            at = whole * _SUPERSTEP + tl.minimum(first + warp, tail - 1)
            step = tl.where(first + warp < tail, at, steps)
            part = words + at * (BITS * 32)
            sums = _add_steps(sums, part, entries, digits + step * STEP, lane, 1, BITS, BATCH, ASM)
    combined = ()
    for n in tl.static_range(2 * BATCH):
        combined = combined + (sums[4 * n] + sums[4 * n + 3],)
    return combined


@triton.jit
def _entries(pointer: tl.tensor, BITS: tl.constexpr, ASM: tl.constexpr) -> Any:
    """The words of a row's table."""
    loaded = load_shared_input4(pointer, ASM)
    if BITS == 4:
        loaded = loaded + load_shared_input4(pointer + 4, ASM)
    return loaded


@triton.jit
def _digit_total(
    digit_sums: tl.tensor, m: tl.constexpr, chunks: tl.tensor, digit: tl.tensor, CHUNKS: tl.constexpr
) -> Any:
    """Sums of vector m's digits, int32 [CHUNKS, 4]: not yet added up, so that loads overlap the long part."""
    chunk = tl.arange(0, CHUNKS)[:, None]
    at = digit_sums + (m * chunks + chunk) * 4 + digit
    return tl.load(at, mask=chunk < chunks, other=0)


@triton.jit
def _by_row(sums: tl.tensor, WARPS: tl.constexpr) -> Any:
    """Sums of every row and digit, float32 [8, 4]."""
    return tl.sum(tl.reshape(sums, [WARPS, 8, 4]), 0).to(tl.float32)


@triton.jit(do_not_specialize=("rows", "whole", "tail", "chunks"))
def table_kernel(
    words: tl.tensor,
    entries: tl.tensor,
    zero: tl.tensor,
    step: tl.tensor,
    digits: tl.tensor,
    digit_sums: tl.tensor,
    x_scale: tl.tensor,
    out: tl.tensor,
    rows: tl.tensor,
    whole: tl.tensor,
    tail: tl.tensor,
    chunks: tl.tensor,
    BITS: tl.constexpr,
    BATCH: tl.constexpr,
    USED: tl.constexpr,
    TAIL: tl.constexpr,
    CHUNKS: tl.constexpr,
    WARPS: tl.constexpr,
    ASM: tl.constexpr,
) -> None:
    """out[m, row] = step * sum((number + zero) * x_m); see `table_product.table_product`."""
    group = tl.program_id(0)
    thread = tl.arange(0, 32 * WARPS)
    lane = thread % 32
    table = _entries(entries + (group * 8 + lane // 4) * (1 << (BITS - 1)), BITS, ASM)
    row = group * 8 + tl.arange(0, 8)
    inside = row < rows
    row_step = tl.load(step + row, mask=inside, other=0.0)
    row_zero = tl.load(zero + row, mask=inside, other=0.0)
    digit = tl.arange(0, 4)[None, :]
    totals = ()
    scales = ()
    if BITS == 4:
        for m in tl.static_range(USED):
            totals = totals + (_digit_total(digit_sums, m, chunks, digit, CHUNKS),)
    for m in tl.static_range(USED):
        scales = scales + (tl.load(x_scale + m),)
    own = words + group.to(tl.int64) * ((whole * _SUPERSTEP + tail) * (BITS * 32))
    sums = _sums(own, table, digits, lane, thread // 32, whole, tail, BITS, BATCH, TAIL, WARPS, ASM)
    power = tl.exp2((8 * digit).to(tl.float32))
    FACTOR: tl.constexpr = _FACTOR3 if BITS == 3 else _FACTOR4
    for m in tl.static_range(USED):
        by_digit = _by_row(sums[2 * m], WARPS) * FACTOR + _by_row(sums[2 * m + 1], WARPS)
        if BITS == 4:
            by_digit += row_zero[:, None] * tl.sum(totals[m], 0).to(tl.float32)[None, :]
        value = tl.sum(by_digit * power, 1) * (scales[m] * row_step)
        tl.store(out + m * rows + row, as_type(value, out.dtype.element_ty, ASM), mask=inside)
