"""Registers of a warp in shared memory, where single bytes of them can be stored.

Two layouts, both free of bank conflicts for whole registers: by lane, 48 bytes each (32 of registers; the
byte before a lane's own is unused, and takes what a lane without a further escape stores), and by half,
where register r of lane l begins at 512 (r // 4) + 16 l + 4 (r % 4), so that a place in the order of a list
is an address.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

# Shared bytes of a step when some groups are escaped, and when none is.
SAVED_STEP_BYTES = 32 * 48
_LISTED_STEP_BYTES = 32 * 32
# Of `planes.DevicePlanes.kinds`.
_ESCAPED_BIT = 2


def scratch_asm(warps: int, steps: int, kinds: int) -> str:
    """PTX that reserves shared memory for `steps` steps of `warps` warps; gives the warp's address for
    thread $1.
    """
    if kinds == 1:
        return ""
    share = steps * (SAVED_STEP_BYTES if kinds & _ESCAPED_BIT else _LISTED_STEP_BYTES)
    return (
        f"{{ .shared .align 16 .b8 saved[{16 + warps * share}];"
        " .reg .u32 a,w; mov.u32 a,saved; shr.u32 w,$1,5;"
        f" mad.lo.u32 a,w,{share},a; add.u32 $0,a,16; }}"
    )


@triton.jit
def scratch(threads: tl.tensor, SPACE: tl.constexpr) -> Any:
    """Shared address (uint32) of each thread's warp; SPACE is `scratch_asm`."""
    return tl.inline_asm_elementwise(SPACE, "=r,r", [threads], dtype=tl.uint32, is_pure=False, pack=1)


@triton.jit
def own_address(address: tl.tensor, lane: tl.tensor, BY_HALF: tl.constexpr) -> Any:
    """Where a lane's registers of the first step begin."""
    return address + lane * (16 if BY_HALF else 48)


@triton.jit
def save_registers(own: tl.tensor, registers: tl.tensor, STEP: tl.constexpr, BY_HALF: tl.constexpr) -> None:
    """Write a lane's 8 registers of a step."""
    _save4(own + STEP * (1024 if BY_HALF else 1536), registers[0], registers[1], registers[2], registers[3])
    second = own + (STEP * 1024 + 512 if BY_HALF else STEP * 1536 + 16)
    _save4(second, registers[4], registers[5], registers[6], registers[7])


@triton.jit
def _save4(address: tl.tensor, r0: tl.tensor, r1: tl.tensor, r2: tl.tensor, r3: tl.tensor) -> None:
    tl.inline_asm_elementwise(
        "st.shared.v4.u32 [$1],{$2,$3,$4,$5}; mov.u32 $0,0;",
        "=r,r,r,r,r,r",
        [address, r0, r1, r2, r3],
        dtype=tl.uint32,
        is_pure=False,
        pack=1,
    )


@triton.jit
def saved_registers(own: tl.tensor, STEP: tl.constexpr, BY_HALF: tl.constexpr) -> Any:
    """Read a lane's 8 registers of a step back."""
    low = _saved4(own + STEP * (1024 if BY_HALF else 1536))
    return low + _saved4(own + (STEP * 1024 + 512 if BY_HALF else STEP * 1536 + 16))


@triton.jit
def _saved4(address: tl.tensor) -> Any:
    return tl.inline_asm_elementwise(
        "ld.shared.v4.u32 {$0,$1,$2,$3},[$4];",
        "=r,=r,=r,=r,r",
        [address],
        dtype=(tl.uint32, tl.uint32, tl.uint32, tl.uint32),
        is_pure=False,
        pack=1,
    )
