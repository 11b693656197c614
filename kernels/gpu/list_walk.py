"""Lists of the weights outside a plane, as the kernels follow them (`lists.pack_lists` says what they are).

A warp reads the list of a superstep four bytes a lane: a running sum over the lanes gives every lane its
place, and it stores the listed bytes into the registers of whichever lane holds them, through shared
memory. So the work is shared evenly, however the listed weights lie.
"""

# Triton's tuples grow by `+` alone.
# ruff: noqa: RUF005
# mypy: disable-error-code="assignment, misc"

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl


def _entry(i: int) -> str:
    """Advance a{i} and distance g{i} of byte i of `word`."""
    return f" shr.u32 g{i},word,down{i}; and.b32 g{i},g{i},far; add.u32 a{i},g{i},1; min.u32 a{i},a{i},far;"


def _store(i: int) -> str:
    return (
        f" add.u32 place,place,a{i}; shl.b32 c,word,left{i}; shr.s32 c,c,sign; setp.ge.s32 q,c,0;"
        f" @q add.s32 c,c,above; setp.ne.u32 q,g{i},far; @q st.shared.u8 [place],c;"
    )


def _walk_asm() -> str:
    """Store the listed bytes of one superstep.

    Operands: the words of the first and second round, words left (of the whole list), this lane's next
    address in the stream (third round), the warp's shared address less 1, short bits, 2^width, and the
    lane.
    """
    each = range(4)
    names = "".join(f",g{i},a{i},down{i},left{i}" for i in each)
    shifts = "".join(f" add.u32 down{i},bits,{8 * i}; sub.u32 left{i},{32 - 8 * i},bits;" for i in each)
    scan = "".join(f" shfl.sync.up.b32 t|q,sum,{by},0,-1; @q add.u32 sum,sum,t;" for by in (1, 2, 4, 8, 16))
    return (
        "{ .reg .pred p,q; .reg .u32 word,next,count,base,bits,above,lane,far,sign,sum,place,t,c,total"
        + names
        + "; .reg .u64 address; mov.u32 $0,0; mov.u32 word,$1; mov.u32 next,$2; mov.u32 count,$3;"
        " mov.u64 address,$4; mov.u32 base,$5; mov.u32 bits,$6; mov.u32 above,$7; mov.u32 lane,$8;"
        " bar.warp.sync -1; setp.eq.u32 p,count,0; @p bra D${:uid};"
        " mov.u32 far,255; shr.u32 far,far,bits; sub.u32 sign,32,bits;"
        + shifts
        + " L${:uid}:"
        + "".join(_entry(i) for i in each)
        + " add.u32 sum,a0,a1; add.u32 t,a2,a3; add.u32 sum,sum,t; mov.u32 total,sum;"
        + scan
        + " sub.u32 place,sum,total; add.u32 place,place,base;"
        + "".join(_store(i) for i in each)
        + " setp.le.u32 p,count,32; @p bra D${:uid};"
        " shfl.sync.idx.b32 t,sum,31,31,-1; add.u32 base,base,t; sub.u32 count,count,32; mov.u32 word,next;"
        " add.u32 t,lane,32; setp.lt.u32 q,t,count; mov.u32 next,-1; @q ld.global.nc.u32 next,[address];"
        " add.u64 address,address,128; bra L${:uid};"
        " D${:uid}: bar.warp.sync -1; }"
    )


_WALK = tl.constexpr(_walk_asm())


@triton.jit
def list_words(
    stream: tl.tensor, start: tl.tensor, count: tl.tensor, lane: tl.tensor, ROUND: tl.constexpr
) -> Any:
    """This lane's word of a round; fillers behind the end of the list."""
    at = ROUND * 32 + lane
    return tl.load(stream + start + at, mask=at < count, other=-1).to(tl.uint32, bitcast=True)


@triton.jit
def walk_list(
    stream: tl.tensor,
    start: tl.tensor,
    count: tl.tensor,
    lane: tl.tensor,
    first: tl.tensor,
    second: tl.tensor,
    address: tl.tensor,
    short_bits: tl.tensor,
    WIDTH: tl.constexpr,
) -> None:
    """Store the listed bytes over saved registers; `address` is the warp's."""
    tl.inline_asm_elementwise(
        _WALK,
        "=r,r,r,r,l,r,r,r,r",
        [
            first,
            second,
            count,
            stream + start + 64 + lane,
            address - 1,
            lane * 0 + short_bits,
            lane * 0 + (1 << WIDTH),
            lane,
        ],
        dtype=tl.uint32,
        is_pure=False,
        pack=1,
    )


@triton.jit
def replace_listed(
    registers: tl.tensor,
    stream: tl.tensor,
    start: tl.tensor,
    count: tl.tensor,
    lane: tl.tensor,
    short_bits: tl.tensor,
    WIDTH: tl.constexpr,
    STEPS: tl.constexpr,
) -> Any:
    """Plain twin: the 8 * STEPS registers of a superstep with the listed bytes."""
    far = 255 >> short_bits
    place = lane * 0 - 1
    for index in range(4 * tl.max(count, 0)):
        word = tl.load(stream + start + index // 4, mask=index // 4 < count, other=-1)
        byte = (word >> (8 * (index % 4))) & 255
        distance = byte >> short_bits
        place += tl.minimum(distance + 1, far)
        code = (byte << (32 - short_bits)) >> (32 - short_bits)
        code = tl.where(code >= 0, code + (1 << WIDTH), code) & 255
        mine = (distance != far) & (((place >> 4) & 31) == lane)
        shift = ((place & 3) * 8).to(tl.uint32)
        number = (place >> 10) * 8 + ((place >> 9) & 1) * 4 + ((place >> 2) & 3)
        changed = ()
        for r in tl.static_range(8 * STEPS):
            other = registers[r] & ((registers[r] * 0 + 255 << shift) ^ 0xFFFFFFFF)
            changed = changed + (
                tl.where(mine & (number == r), other | (code.to(tl.uint32) << shift), registers[r]),
            )
        registers = changed
    return registers
