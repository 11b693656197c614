"""Compiled loops over the streams of groups. Callers guarantee every index used here.

`layout` is `Layout.arrays`; plane and short are uint32 words, LSB first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kernels.int8x.adaptive_streams import GROUP_ROWS
from kernels.jit import njit, njit_inline

Arrays = tuple[np.ndarray, ...]

_GROUP_ROWS = GROUP_ROWS
_ONE = np.uint64(1)
_WORD_SHIFT = np.uint64(5)
_BIT_MASK = np.uint64(31)
_HIGH = np.uint64(32)
_LOW_WORD = np.uint64(0xFFFFFFFF)
# Larger than every code: groups of whole bytes escape nothing.
_NEVER = np.uint64(256)


@njit
def pack_groups(
    q: np.ndarray,
    order: np.ndarray,
    first: int,
    end: int,
    layout: Arrays,
    plane: np.ndarray,
    short: np.ndarray,
    tail: np.ndarray,
) -> None:
    """Code groups first..end of q int8 [n_out, n_in]; fills exactly their parts of the streams."""
    widths, short_widths, words, short_words, bytes_at = layout
    for g in range(first, end):
        _pack_group(
            q,
            order[g * _GROUP_ROWS : (g + 1) * _GROUP_ROWS],
            widths[g],
            short_widths[g],
            plane[words[g] : words[g + 1]],
            short[short_words[g] : short_words[g + 1]],
            tail[bytes_at[g] : bytes_at[g + 1]],
        )


@njit
def unpack_groups(
    plane: np.ndarray,
    short: np.ndarray,
    tail: np.ndarray,
    order: np.ndarray,
    first: int,
    end: int,
    layout: Arrays,
    out: np.ndarray,
) -> None:
    """Inverse of `pack_groups` into out int8 [n_out, n_in]."""
    widths, short_widths, words, short_words, bytes_at = layout
    no_short, no_tail = np.zeros(1, np.uint32), np.zeros(1, np.int8)
    for g in range(first, end):
        shorts, tails = short[short_words[g] : short_words[g + 1]], tail[bytes_at[g] : bytes_at[g + 1]]
        _unpack_group(
            plane[words[g] : words[g + 1]],
            shorts if shorts.size else no_short,
            tails if tails.size else no_tail,
            widths[g],
            short_widths[g],
            order[g * _GROUP_ROWS : (g + 1) * _GROUP_ROWS],
            out,
        )


@njit
def inspect_groups(
    plane: np.ndarray,
    short: np.ndarray,
    shape: tuple[int, int],
    shorts: np.ndarray,
    first: int,
    end: int,
    layout: Arrays,
    found: np.ndarray,
) -> None:
    """found int64 [groups, 3]: escapes in the plane, "a byte follows" (all escapes where there is no short
    stream), and whether ones lie beyond the end of either stream; `shorts` are the codes to look through.
    """
    widths, short_widths, words, short_words, _ = layout
    for g in range(first, end):
        width, short_width, codes = (
            widths[g],
            short_widths[g],
            shape[1] * min(_GROUP_ROWS, shape[0] - g * _GROUP_ROWS),
        )
        mine, my_short = plane[words[g] : words[g + 1]], short[short_words[g] : short_words[g + 1]]
        escaped = _count_codes(mine, width, codes, (1 << width) - 1) if width < 8 else 0
        follow = escaped
        if short_width:
            follow = _count_codes(my_short, short_width, shorts[g], (1 << short_width) - 1)
        found[g, 0], found[g, 1] = escaped, follow
        found[g, 2] = _excess(mine, width * codes) | _excess(my_short, short_width * shorts[g])


@njit
def _pack_group(
    q: np.ndarray,
    rows: np.ndarray,
    width: int,
    short_width: int,
    plane: np.ndarray,
    short: np.ndarray,
    tail: np.ndarray,
) -> None:
    """Code some rows of q int8 [n_out, n_in]; fills exactly the slices uint32, uint32 and int8 given."""
    limit = (1 << (width - 1)) - 1 if width < 8 else 128
    offset = np.int64(limit if width < 8 else 0)
    mask, follows = np.uint64((1 << width) - 1), np.int64((1 << short_width) - 1)
    buffer, filled, k = np.uint64(0), np.uint64(0), 0
    short_buffer, short_filled, s, t = np.uint64(0), np.uint64(0), 0, 0
    for r in range(rows.size):
        row = q[rows[r]]
        for j in range(row.size):
            value = np.int64(row[j])
            magnitude = abs(value)
            code = np.uint64(value + offset) & mask
            if magnitude > limit:
                code = mask
                index = min(2 * (magnitude - limit - 1) + np.int64(value < 0), follows)
                if index == follows:
                    tail[t] = value
                    t += 1
                short_buffer |= np.uint64(index) << short_filled
                short_filled += np.uint64(short_width)
                if short_filled >= _HIGH:
                    short[s] = np.uint32(short_buffer & _LOW_WORD)
                    short_buffer >>= _HIGH
                    short_filled -= _HIGH
                    s += 1
            buffer |= code << filled
            filled += np.uint64(width)
            if filled >= _HIGH:
                plane[k] = np.uint32(buffer & _LOW_WORD)
                buffer >>= _HIGH
                filled -= _HIGH
                k += 1
    if filled > np.uint64(0):
        plane[k] = np.uint32(buffer)
    if short_filled > np.uint64(0):
        short[s] = np.uint32(short_buffer)


@njit_inline
def _read(words: np.ndarray, bit: Any, mask: Any, last: Any) -> Any:
    """The code at a bit position; `last`: index of the last word."""
    k = bit >> _WORD_SHIFT
    pair = np.uint64(words[k]) | np.uint64(words[min(k + _ONE, last)]) << _HIGH
    return (pair >> (bit & _BIT_MASK)) & mask


@njit
def _unpack_group(
    plane: np.ndarray,
    short: np.ndarray,
    tail: np.ndarray,
    width: int,
    short_width: int,
    rows: np.ndarray,
    out: np.ndarray,
) -> None:
    """Inverse of `_pack_group` into rows of out int8 [n_out, n_in]; short and tail hold at least one entry.

    No branch depends on the weights: which are escaped cannot be predicted.
    """
    limit = np.int64((1 << (width - 1)) - 1)
    offset = limit if width < 8 else np.int64(0)
    mask, follows = np.uint64((1 << width) - 1), np.uint64((1 << short_width) - 1)
    escape = mask if width < 8 else _NEVER
    last, short_last, tail_last = (
        np.uint64(plane.size - 1),
        np.uint64(short.size - 1),
        np.uint64(tail.size - 1),
    )
    step, short_step = np.uint64(width), np.uint64(short_width)
    bit, short_bit, t = np.uint64(0), np.uint64(0), np.uint64(0)
    for r in range(rows.size):
        row = out[rows[r]]
        for j in range(row.size):
            code = _read(plane, bit, mask, last)
            bit += step
            escaped = code == escape
            index = _read(short, min(short_bit, (short_last << _WORD_SHIFT) | _BIT_MASK), follows, short_last)
            short_bit += short_step if escaped else np.uint64(0)
            magnitude = limit + np.int64(1) + np.int64(index >> _ONE)
            value = -magnitude if index & _ONE else magnitude
            byte = escaped and index == follows
            value = np.int64(tail[min(t, tail_last)]) if byte else value
            t += np.uint64(byte)
            row[j] = np.int8(value if escaped else np.int64(code) - offset)


@njit
def _count_codes(words: np.ndarray, width: int, n: int, code: int) -> int:
    """How many of the n codes of `width` bits equal `code`."""
    last, mask, wanted = np.uint64(words.size - 1), np.uint64((1 << width) - 1), np.uint64(code)
    found = 0
    for i in range(n):
        found += _read(words, np.uint64(i) * np.uint64(width), mask, last) == wanted
    return found


@njit
def _excess(words: np.ndarray, bits: int) -> int:
    return int(bits % 32 > 0 and words[-1] >> np.uint32(bits % 32) > 0)
