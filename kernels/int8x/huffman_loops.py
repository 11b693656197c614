"""Compiled loops of Huffman coding: uint32 words, most significant bit first. Callers guarantee every index.

`codes` uint64 [256] and `lengths` int64 [256] belong to q + 128. By length: `ends`, the first code that is
too large for it, and `firsts`, what a code is to be moved by to give its place among `symbols`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kernels.int8x.levels import BLOCK
from kernels.jit import njit, njit_inline

# Codes up to so many bits are found by one look into a table; the others are rare by construction.
SHORT_BITS = 12
_BLOCK = BLOCK
_SHORT = np.uint64(SHORT_BITS)
_WINDOW = np.uint64(64)
_WORD = np.uint64(32)
_LOW_WORD = np.uint64(0xFFFFFFFF)
_BIT_MASK = np.uint64(31)


@njit
def block_bits(values: np.ndarray, lengths: np.ndarray, out: np.ndarray) -> None:
    """Bits of each block of 1024 of values int8 [n]."""
    for b in range(out.size):
        bits = 0
        for i in range(b * _BLOCK, min((b + 1) * _BLOCK, values.size)):
            bits += lengths[np.int64(values[i]) + 128]
        out[b] = bits


@njit
def pack(values: np.ndarray, codes: np.ndarray, lengths: np.ndarray, bit: int, stream: np.ndarray) -> Any:
    """Write values int8 [n] from bit number `bit` on, whole words only; returns the word begun last.

    Bits of the first word that lie before `bit` are written as zeros.
    """
    buffer, filled, k = np.uint64(0), np.uint64(bit & 31), bit >> 5
    for i in range(values.size):
        symbol = np.int64(values[i]) + 128
        left = np.uint64(lengths[symbol])
        while left > np.uint64(0):
            take = min(left, _WORD - filled)
            left -= take
            part = (codes[symbol] >> left) & ((np.uint64(1) << take) - np.uint64(1))
            filled += take
            buffer |= part << (_WORD - filled)
            if filled == _WORD:
                stream[k] = np.uint32(buffer & _LOW_WORD)
                buffer, filled = np.uint64(0), np.uint64(0)
                k += 1
    return np.uint32(buffer & _LOW_WORD)


@njit
def short_codes(codes: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """int16 [2^SHORT_BITS]: symbol | length << 8 of the code each pattern begins with, 0 for longer codes."""
    table = np.zeros(1 << SHORT_BITS, np.int16)
    for symbol in range(256):
        spare = SHORT_BITS - lengths[symbol]
        if lengths[symbol] and spare >= 0:
            first = np.int64(codes[symbol]) << spare
            table[first : first + (1 << spare)] = symbol | lengths[symbol] << 8
    return table


@njit_inline
def _window(stream: np.ndarray, bit: Any) -> Any:
    """64 bits of the stream from a bit number on."""
    k, shift = bit >> np.uint64(5), bit & _BIT_MASK
    high = np.uint64(stream[k]) << _WORD | np.uint64(stream[k + np.uint64(1)])
    low = np.uint64(stream[k + np.uint64(2)])
    return high << shift | low >> (_WORD - shift)


@njit
def unpack(
    stream: np.ndarray,
    start: int,
    short: np.ndarray,
    ends: np.ndarray,
    firsts: np.ndarray,
    symbols: np.ndarray,
    out: np.ndarray,
) -> None:
    """Decode out.size weights from bit number `start` on; `stream` has two words more than its codes."""
    bit = np.uint64(start)
    for i in range(out.size):
        window = _window(stream, bit)
        found = np.int64(short[window >> (_WINDOW - _SHORT)])
        symbol: Any = found & 255
        length: Any = found >> 8
        if length == 0:
            length = SHORT_BITS + 1
            while window >> (_WINDOW - np.uint64(length)) >= ends[length]:
                length += 1
            code = np.int64(window >> (_WINDOW - np.uint64(length)))
            symbol = symbols[code + firsts[length]]
        bit += np.uint64(length)
        out[i] = np.int8(symbol - 128)
