"""The fetch role: what a warp does that reads residual rows from host memory and sums them up.

Any kernel whose tensors have one element per thread can give its first programs to it. Reading host memory
takes microseconds, so a warp has many loads in flight, waits for nobody and shares nothing with other warps.
"""

# Triton's tuples grow by `+` alone, and a constexpr `if` needs its `else`.
# ruff: noqa: RUF005, RET505
# mypy: disable-error-code="assignment, misc"

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from kernels.gpu.primitives import store_words4

# Codes are read as floats 2^23 + (code + 8) 16^place: no integer is converted.
_RAISED = tl.constexpr(0x4B000000)


@triton.jit
def load_word_where(pointers: tl.tensor, wanted: tl.tensor, ASM: tl.constexpr) -> Any:
    """One word, read once, where `wanted` (int32) is not 0; elsewhere 0 and no access."""
    if ASM:
        return tl.inline_asm_elementwise(
            "{ .reg .pred p; setp.ne.s32 p,$2,0; mov.u32 $0,0;"
            " @p ld.global.nc.L1::no_allocate.u32 $0,[$1]; }",
            "=&r,l,r",
            [pointers, wanted],
            dtype=tl.uint32,
            is_pure=True,
            pack=1,
        )
    else:
        return tl.load(pointers, mask=wanted != 0, other=0).to(tl.uint32, bitcast=True)


@triton.jit
def chunk_share(k_chunk: tl.tensor, length: tl.tensor) -> tl.tensor:
    """k_chunk * length / 1024 to the nearest, halves to the even number; at most `length`."""
    share = k_chunk * length
    rest = share & 1023
    whole = share >> 10
    up = (rest > 512) | ((rest == 512) & ((whole & 1) == 1))
    return tl.minimum(whole + up.to(tl.int32), length)


@triton.jit
def listed_channels(k_chunk: tl.tensor, columns: tl.tensor) -> tl.tensor:
    """Length of the list for k_chunk in effect."""
    return (columns >> 10) * tl.minimum(k_chunk, 1024) + chunk_share(k_chunk, columns & 1023)


@triton.jit
def _entries(entries: tl.tensor, slot: tl.tensor, ROWS: tl.constexpr, SPLITS: tl.constexpr) -> Any:
    """Tuple of ROWS entries of the list, SPLITS apart; past its end they are whatever the padding holds."""
    read = ()
    for r in tl.static_range(ROWS):
        read = read + (tl.load(entries + slot + r * SPLITS),)
    return read


@triton.jit
def _fetched(
    segment: tl.tensor,
    channels: tl.tensor,
    words: tl.tensor,
    inside: tl.tensor,
    left: tl.tensor,
    ROWS: tl.constexpr,
    SPLITS: tl.constexpr,
    ASM: tl.constexpr,
) -> Any:
    """Tuple of the words of ROWS channels, 0 for those that `left` rows do not reach."""
    read = ()
    for r in tl.static_range(ROWS):
        wanted = (inside & (r * SPLITS < left)).to(tl.int32)
        read = read + (load_word_where(segment + channels[r] * words, wanted, ASM),)
    return read


@triton.jit
def _added(total: tl.tensor, half: tl.tensor, value: tl.tensor, PLACE: tl.constexpr) -> tl.tensor:
    raised = ((half & (0xF << (4 * PLACE))) | _RAISED).to(tl.float32, bitcast=True)
    return total + (raised - (8388608.0 + 8 * 16**PLACE)) * value


@triton.jit
def _accumulate(sums: tl.tensor, word: tl.tensor, value: tl.tensor) -> Any:
    """Eight sums, each of code * value * 16^(place % 4): codes are used where they lie in the half word."""
    low = word ^ 0x88888888
    high = low >> 16
    added = ()
    for j in tl.static_range(4):
        added = added + (_added(sums[j], low, value, j),)
    for j in tl.static_range(4):
        added = added + (_added(sums[4 + j], high, value, j),)
    return added


@triton.jit
def _bits(value: tl.tensor, PLACE: tl.constexpr) -> tl.tensor:
    return (value * (1.0 / 16**PLACE)).to(tl.uint32, bitcast=True)


@triton.jit
def _store(partial: tl.tensor, sums: tl.tensor, inside: tl.tensor, ASM: tl.constexpr) -> None:
    """The 8 outputs of each lane's word."""
    mask = inside.to(tl.int32)
    words = partial.to(tl.pointer_type(tl.int32), bitcast=True)
    for half in tl.static_range(2):
        store_words4(
            words + 4 * half,
            _bits(sums[4 * half], 0),
            _bits(sums[4 * half + 1], 1),
            _bits(sums[4 * half + 2], 2),
            _bits(sums[4 * half + 3], 3),
            mask,
            ASM,
        )


@triton.jit
def fetch_role(
    listing: tl.tuple,
    shape: tl.tuple,
    program: tl.tensor,
    thread: tl.tensor,
    ROWS: tl.constexpr,
    SPLITS: tl.constexpr,
    AHEAD: tl.constexpr,
    ASM: tl.constexpr,
) -> None:
    """Program `program` of `Fetch.programs`: partial sums of one segment a warp over every SPLITS-th channel.

    listing = (residual words, channels, values, control, partial); shape = (segment groups, words of a row,
    channels of the input). Stores nothing while k_chunk in effect is 0.
    """
    residual, channels, values, control, partial = listing
    groups, words, columns = shape
    split = program // groups
    word = ((program % groups) * (thread.shape[0] // 32) + thread // 32) * 32 + thread % 32
    inside = word < words
    slot = split + thread * 0
    # The list is read before its length is known: one wait less.
    chosen = _entries(channels, slot, ROWS, SPLITS)
    factors = _entries(values, slot, ROWS, SPLITS)
    k_chunk = tl.load(control + 1)
    rows = listed_channels(k_chunk, columns)
    sums = ((thread * 0).to(tl.float32),) * 8
    for first in range(split, rows, ROWS * SPLITS):
        read = _fetched(residual + word, chosen, words, inside, rows - first, ROWS, SPLITS, ASM)
        slot += ROWS * SPLITS
        if AHEAD:
            chosen = _entries(channels, slot, ROWS, SPLITS)
        for r in tl.static_range(ROWS):
            # A word of 0 is eight codes of 0, but padding times 0 may not be a number.
            factor = tl.where(r * SPLITS < rows - first, factors[r], 0.0)
            sums = _accumulate(sums, read[r], factor)
        if not AHEAD:
            chosen = _entries(channels, slot, ROWS, SPLITS)
        factors = _entries(values, slot, ROWS, SPLITS)
    if k_chunk > 0:
        at = partial + split * (words * 8) + word * 8
        _store(at, sums, inside, ASM)
