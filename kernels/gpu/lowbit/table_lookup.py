"""One step of the table product: 32 codes of each lane looked up and multiplied (see `tables`)."""

# Triton's tuples grow by `+` alone, and a constexpr `if` must stand by itself.
# ruff: noqa: RUF005
# mypy: disable-error-code="assignment, misc"

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from kernels.gpu.bitmap_primitives import byte_permute
from kernels.gpu.ordered_loads import ordered_input4
from kernels.gpu.primitives import load_shared_input4
from kernels.gpu.tensor_cores import mma


@triton.jit
def row_entries(pointer: tl.tensor, BITS: tl.constexpr, ASM: tl.constexpr) -> Any:
    """The words of a row's table."""
    loaded = load_shared_input4(pointer, ASM)
    if BITS == 4:
        loaded = loaded + load_shared_input4(pointer + 4, ASM)
    return loaded


@triton.jit
def selectors_of(words: tl.tensor, FIRST: tl.constexpr, BITS: tl.constexpr) -> Any:
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
def add_step(
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
        b = ordered_input4(digits + m * 128, ASM)
        c = _multiplied(high, b, sums[8 * m : 8 * m + 4], True, ASM)
        d = _multiplied(low, b, sums[8 * m + 4 : 8 * m + 8], False, ASM)
        if BITS == 4:
            c = _multiplied(upper_high, b, c, True, ASM)
            d = _multiplied(upper_low, b, d, False, ASM)
        added = added + c + d
    return added
