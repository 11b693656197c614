"""From the words of one lane and step to its 32 weights as bytes, all inside the kernel.

A weight's byte is 8 (j + 2) + m = weight + 20. Flags are counted by multiplication, those of eight weights at
once: nibble n of flags * 0x11111110 is the number of flags below it, hence the place of its code among the
eight. Then bytes are moved, not shifted: one permute turns 2-bit codes into bytes, another hands them out.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from kernels.gpu.bitmap_primitives import byte_permute, funnel_right
from kernels.gpu.primitives import popc

# What each byte has to be xored with 0x10 (j = 0) to become 8 (j + 2), for codes 0 to 3: j = -2, -1, 1, 2.
_CODE_BYTES = tl.constexpr(0x30081810)
# An unflagged nibble becomes 8 or more, which makes the permute repeat a sign: 0 for all bytes above.
_RANKS = tl.constexpr(0x11111108)


@triton.jit
def nothing() -> Any:
    """An empty tuple to add to."""
    return ()


@triton.jit
def three_bit_registers(w0: tl.tensor, w1: tl.tensor, w2: tl.tensor) -> Any:
    """The 3-bit fields of three words as bytes: eight registers, number 2 k + h, byte i."""
    w3 = ((w0 >> 6) & 0x03030303) | ((w1 >> 4) & 0x0C0C0C0C) | ((w2 >> 2) & 0x30303030)
    words = (w0, w1, w2, w3)
    registers = nothing()
    for k in tl.static_range(4):
        registers += (words[k] & 0x07070707, (words[k] >> 3) & 0x07070707)
    return registers


@triton.jit
def code_window(codes: tl.tensor, first: tl.tensor, ASM: tl.constexpr) -> Any:
    """The 32 codes (64 bits, as two words) that begin at code number `first`."""
    word = codes + (first >> 4)
    w0 = tl.load(word).to(tl.uint32, bitcast=True)
    w1 = tl.load(word + 1).to(tl.uint32, bitcast=True)
    w2 = tl.load(word + 2).to(tl.uint32, bitcast=True)
    shift = ((first & 15) * 2).to(tl.uint32)
    return funnel_right(w0, w1, shift, ASM), funnel_right(w1, w2, shift, ASM)


@triton.jit
def eight_code_bytes(window: tl.tensor, ASM: tl.constexpr) -> Any:
    """Bytes of the first eight 2-bit codes of a word, in order, as two words."""
    octets = byte_permute(window, window & 0, window & 0 | 0x4140, ASM)
    nibbles = (octets | (octets << 4)) & 0x0F0F0F0F
    selectors = (nibbles | (nibbles << 2)) & 0x33333333
    table = window & 0 | _CODE_BYTES
    return byte_permute(table, table, selectors, ASM), byte_permute(table, table, selectors >> 16, ASM)


@triton.jit
def weight_registers(
    w0: tl.tensor, w1: tl.tensor, w2: tl.tensor, flags: tl.tensor, window: tl.tuple, ASM: tl.constexpr
) -> Any:
    """Eight registers of weight + 20, as `three_bit_registers` orders them."""
    fields = three_bit_registers(w0, w1, w2)
    near, far = window
    registers = nothing()
    for k in tl.static_range(4):
        flagged = (flags >> k) & 0x11111111
        ranks = flagged * _RANKS + 0x88888888
        low, high = eight_code_bytes(near, ASM)
        even = fields[2 * k] ^ byte_permute(low, high, ranks, ASM) ^ 0x10101010
        odd = fields[2 * k + 1] ^ byte_permute(low, high, ranks >> 16, ASM) ^ 0x10101010
        registers += (even, odd)
        used = (popc(flagged, ASM) * 2).to(tl.uint32)
        near, far = funnel_right(near, far, used, ASM), far >> used
    return registers
