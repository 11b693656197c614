"""Escapes: finding the escape codes among a lane's registers and putting the escaped bytes in their place.

A lane writes its registers to shared memory, walks over the positions of its escape codes (four steps in
lockstep, so that their latencies overlap), stores for each the byte of the escaped weight, and reads the
registers back. The dense product then needs no second, sparse part, and stays exact and independent of the
batch. Position 4 r + i is byte i of register r. The code of an escaped weight is two's complement of
`short_bits`, taken from the stream, most significant bit first; not negative ones stand for 2^width - 1
more.
"""

# A return under a constexpr `if` needs its `else` in triton, and its tuples grow by `+` alone.
# ruff: noqa: RET505, RUF005
# mypy: disable-error-code="assignment, misc"

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from kernels.gpu.primitives import funnel_left, popc, warp_scan, warp_take
from kernels.gpu.saving import SAVED_STEP_BYTES

_STEP_BYTES = SAVED_STEP_BYTES


def _body(u: int) -> str:
    return (
        f" bfind.u32 t{u},m{u}; shl.b32 n{u},1,t{u}; xor.b32 m{u},m{u},n{u};"
        f" shr.s32 s{u},v{u},down; mul.lo.u32 v{u},v{u},factor;"
        f" setp.ge.s32 q,s{u},0; @q add.s32 s{u},s{u},above;"
        f" add.u32 t{u},t{u},base; st.shared.u8 [t{u}+{u * _STEP_BYTES}],s{u};"
    )


def _refill(u: int) -> str:
    return (
        f" shr.u32 n{u},b{u},5; mad.wide.u32 address,n{u},4,stream; ld.global.nc.u32 v{u},[address];"
        f" ld.global.nc.u32 n{u},[address+4]; shf.l.wrap.b32 v{u},n{u},v{u},b{u};"
    )


def _loop_asm(steps: int) -> str:
    """The walk over the escapes of `steps` steps.

    Operands: masks, windows and first bits of each step, the lane's address, short bits, whether a window
    lies outside the line that filled it, the stream, 2^width - 1, and how many codes a window holds.
    """
    each = range(steps)
    names = "".join(f",m{u},v{u},b{u},n{u},t{u}" for u in each)
    taken = "".join(
        f" mov.u32 m{u},${1 + u}; mov.u32 v{u},${1 + steps + u}; mov.u32 b{u},${1 + 2 * steps + u};"
        for u in each
    )
    rest = 1 + 3 * steps
    left = " mov.u32 left,m0;" + "".join(f" or.b32 left,left,m{u};" for u in each[1:])
    return (
        "{ .reg .pred p,q; .reg .u32 left,base,width,down,factor,above,turns,most,bits" + names + ";"
        " .reg .s32 "
        + ",".join(f"s{u}" for u in each)
        + "; .reg .u64 stream,address;"
        + taken
        + f" mov.u32 base,${rest}; mov.u32 width,${rest + 1}; mov.u64 stream,${rest + 3};"
        + f" mov.u32 above,${rest + 4}; mov.u32 most,${rest + 5};"
        + " mov.u32 $0,0;"
        + left
        + " setp.eq.u32 p,left,0; @p bra D${:uid};"
        + " sub.u32 down,32,width; shl.b32 factor,1,width; mul.lo.u32 bits,most,width; mov.u32 turns,most;"
        + f" setp.ne.u32 p,${rest + 2},0; @p bra F${{:uid}};"
        + " L${:uid}:"
        + "".join(_body(u) for u in each)
        + left
        + " sub.u32 turns,turns,1; setp.ne.u32 p,left,0; setp.ne.and.u32 q,turns,0,p; @q bra L${:uid};"
        + " @!p bra D${:uid};"
        + "".join(f" add.u32 b{u},b{u},bits;" for u in each)
        + " F${:uid}:"
        + "".join(_refill(u) for u in each)
        + " mov.u32 turns,most; bra L${:uid}; D${:uid}: }"
    )


_LOOP1 = tl.constexpr(_loop_asm(1))
_LOOP2 = tl.constexpr(_loop_asm(2))
_LOOP4 = tl.constexpr(_loop_asm(4))
_LOOP1_OPERANDS = tl.constexpr("=&r,r,r,r,r,r,r,l,r,r")
_LOOP2_OPERANDS = tl.constexpr("=&r,r,r,r,r,r,r,r,r,r,l,r,r")
_LOOP4_OPERANDS = tl.constexpr("=&r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,l,r,r")


@triton.jit
def _pair_flags(even: tl.tensor, odd: tl.tensor, WIDTH: tl.constexpr) -> Any:
    """Escape flags of two registers: bit 3 of each byte for the even one, bit 7 for the odd one."""
    if WIDTH <= 3:
        pair = even + odd * 16
        return (pair + 0x11111111 * (8 - ((1 << WIDTH) - 1))) & 0x88888888
    elif WIDTH == 4:
        pair = even + odd * 16
        return ((pair & 0x77777777) + 0x11111111) & pair & 0x88888888
    else:
        carry: tl.constexpr = 0x01010101 * (0x80 - ((1 << WIDTH) - 1))
        return (((even + carry) >> 4) & 0x08080808) | ((odd + carry) & 0x80808080)


@triton.jit
def escape_mask(registers: tl.tensor, WIDTH: tl.constexpr, ASM: tl.constexpr) -> Any:
    """Which of the lane's 32 codes are the escape code 2^WIDTH - 1: bit 4 r + i for byte i of register r."""
    mask = registers[0] * 0
    for pair in tl.static_range(3, -1, -1):
        flags = _pair_flags(registers[2 * pair], registers[2 * pair + 1], WIDTH)
        # The product gathers the eight flags in its upper byte; nothing carries into it.
        mask = funnel_left(mask, flags * 0x00204081, 8, ASM)
    return mask


@triton.jit
def first_bits(
    masks: tl.tensor, first_bit: tl.tensor, short_bits: tl.tensor, STEPS: tl.constexpr, ASM: tl.constexpr
) -> Any:
    """Where each step's short codes begin in the stream, for every lane: tuple of STEPS, int32.

    `first_bit` is where the superstep's begin; lanes follow each other, and in a lane the steps.
    """
    counts = ()
    total = first_bit * 0
    for s in tl.static_range(STEPS):
        count = popc(masks[s], ASM)
        counts = counts + (count,)
        total += count
    bit = first_bit + (warp_scan(total, ASM) - total) * short_bits
    bits = ()
    for s in tl.static_range(STEPS):
        bits = bits + (bit,)
        bit += counts[s] * short_bits
    return bits


@triton.jit
def walk_escapes(
    masks: tl.tensor,
    bits: tl.tensor,
    first_bit: tl.tensor,
    line: tl.tensor,
    stream: tl.tensor,
    address: tl.tensor,
    short_bits: tl.tensor,
    WIDTH: tl.constexpr,
    STEPS: tl.constexpr,
) -> None:
    """Overwrite the escape codes of saved registers; `line` are the 32 stream words from `first_bit` on."""
    first_word = first_bit >> 5
    windows = ()
    for s in tl.static_range(STEPS):
        word = (bits[s] >> 5) - first_word
        high = warp_take(line, word, True)
        low = warp_take(line, word + 1, True)
        windows = windows + (funnel_left(high, low, bits[s], True),)
    # Rare: more short codes in a superstep than a line holds.
    outside = ((bits[STEPS - 1] >> 5) - first_word >= 31).to(tl.int32)
    zero = address * 0
    above = zero + ((1 << WIDTH) - 1)
    rest = (address, zero + short_bits, outside, stream + zero, above, zero + 32 // short_bits)
    if STEPS == 1:
        _walk(_LOOP1, _LOOP1_OPERANDS, masks + windows + bits + rest)
    elif STEPS == 2:
        _walk(_LOOP2, _LOOP2_OPERANDS, masks + windows + bits + rest)
    else:
        _walk(_LOOP4, _LOOP4_OPERANDS, masks + windows + bits + rest)


@triton.jit
def _walk(LOOP: tl.constexpr, OPERANDS: tl.constexpr, operands: tl.tensor) -> None:
    tl.inline_asm_elementwise(LOOP, OPERANDS, operands, dtype=tl.uint32, is_pure=False, pack=1)


@triton.jit
def replace_escapes(
    registers: tl.tensor,
    mask: tl.tensor,
    bit: tl.tensor,
    stream: tl.tensor,
    short_bits: tl.tensor,
    WIDTH: tl.constexpr,
) -> Any:
    """Plain twin of saving, walking and reading back one step: its 8 registers with the escaped bytes."""
    replaced = ()
    for back in tl.static_range(8):
        value = registers[7 - back]
        for byte in tl.static_range(3, -1, -1):
            escaped = ((mask >> (4 * (7 - back) + byte)) & 1) != 0
            high = tl.load(stream + (bit >> 5)).to(tl.uint32, bitcast=True)
            low = tl.load(stream + (bit >> 5) + 1).to(tl.uint32, bitcast=True)
            window = funnel_left(high, low, bit, False).to(tl.int32, bitcast=True)
            code = window >> (32 - short_bits)
            code = tl.where(code >= 0, code + ((1 << WIDTH) - 1), code) & 0xFF
            other = value & (0xFFFFFFFF ^ (0xFF << (8 * byte)))
            value = tl.where(escaped, other | (code.to(tl.uint32) << (8 * byte)), value)
            bit = tl.where(escaped, bit + short_bits, bit)
        replaced = (value,) + replaced
    return replaced
