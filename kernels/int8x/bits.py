"""Compiled loops over bit streams: uint32 words, LSB first. Callers guarantee every index used here."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kernels.jit import njit

Words = npt.NDArray[np.uint32]
Values = npt.NDArray[np.int8]
Positions = npt.NDArray[np.int64]

# Unsigned constants keep numba from adding a negative-index test to every access.
_ONE = np.uint64(1)
_WORD_SHIFT = np.uint64(5)
_BIT_MASK = np.uint64(31)
_HIGH = np.uint64(32)


@njit
def split(values: Values, limit: int, bitmap: Words, parts: Values) -> int:
    """Separate values of |v| <= limit from the rest, and set one bit in `bitmap` (zeroed) per later value.

    `parts` [n] receives the low values from its start and the others, in reverse, from its end.
    Returns the number of low values.
    """
    low, high = 0, values.size
    for i in range(values.size):
        value = values[i]
        later = int(abs(np.int64(value)) > limit)
        high -= later
        parts[high * later + low * (1 - later)] = value
        low += 1 - later
        bitmap[i >> 5] |= np.uint32(later << (i & 31))
    return low


@njit
def pack(values: Values, width: int, words: Words) -> None:
    """Write values as two's complement codes of `width` bits; fills `words` exactly, zero padded."""
    mask = np.uint64((1 << width) - 1)
    buffer, filled, k = np.uint64(0), np.uint64(0), 0
    for i in range(values.size):
        buffer |= (np.uint64(values[i]) & mask) << filled
        filled += np.uint64(width)
        if filled >= _HIGH:
            words[k] = np.uint32(buffer & np.uint64(0xFFFFFFFF))
            buffer >>= _HIGH
            filled -= _HIGH
            k += 1
    if filled > np.uint64(0):
        words[k] = np.uint32(buffer)


@njit
def unpack(words: Words, width: int, first: int, out: Values) -> None:
    """Read out.size codes of `width` bits, starting at code number `first`."""
    last = words.size - 1
    sign = np.int64(1 << (width - 1))
    mask = np.uint64((1 << width) - 1)
    for i in range(out.size):
        bit = np.uint64(first + i) * np.uint64(width)
        k: Any = np.int64(bit >> _WORD_SHIFT)
        pair = np.uint64(words[np.uint64(k)]) | np.uint64(words[np.uint64(min(k + 1, last))]) << _HIGH
        code = np.int64((pair >> (bit & _BIT_MASK)) & mask)
        out[i] = np.int8((code ^ sign) - sign)


@njit
def merge(bitmap: Words, first: int, parts: Values, low_count: int, out: Values) -> None:
    """Inverse of `split` for out.size weights from bit `first` on.

    `parts` holds the low values, then (from `low_count`) the later ones, both in order.
    """
    low, high = np.uint64(0), np.uint64(low_count)
    for i in range(out.size):
        at = np.uint64(first + i)
        later = np.uint64(bitmap[at >> _WORD_SHIFT] >> np.uint32(at & _BIT_MASK)) & _ONE
        # One load for both cases: a branch would be mispredicted for almost every second weight.
        out[i] = parts[high if later else low]
        high += later
        low += _ONE - later


@njit
def popcount(word: Any) -> int:
    """Ones of a uint32."""
    word = word - ((word >> np.uint32(1)) & np.uint32(0x55555555))
    word = (word & np.uint32(0x33333333)) + ((word >> np.uint32(2)) & np.uint32(0x33333333))
    word = (word + (word >> np.uint32(4))) & np.uint32(0x0F0F0F0F)
    return int((word * np.uint32(0x01010101)) >> np.uint32(24)) & 0xFF


@njit
def ones_before(bitmap: Words, positions: Positions, out: Positions) -> int:
    """Running count of ones before each bit position (rising, within the bitmap); returns all ones."""
    ones, k = 0, 0
    for j in range(positions.size):
        word = positions[j] >> 5
        while k < word:
            ones += popcount(bitmap[k])
            k += 1
        bits = positions[j] & 31
        inside = 0
        if bits:
            inside = popcount(bitmap[k] & np.uint32((1 << bits) - 1))
        out[j] = ones + inside
    while k < bitmap.size:
        ones += popcount(bitmap[k])
        k += 1
    return ones
