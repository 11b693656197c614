"""Trading weights among the four lanes of a row, so that they store neighbouring columns together."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from kernels.gpu.primitives import warp_take


@triton.jit
def _trade(first: tl.tensor, second: tl.tensor, upper: tl.tensor, other: tl.tensor, ASM: tl.constexpr) -> Any:
    """This lane's pair once the lower lane's `second` has gone for the `first` of the upper, lane `other`."""
    taken = warp_take(tl.where(upper, first, second), other, ASM)
    return tl.where(upper, taken, first), tl.where(upper, second, taken)


@triton.jit
def traded(r: tl.tensor, lane: tl.tensor, ASM: tl.constexpr) -> Any:
    """The 8 registers of a step transposed among the lanes of a quad, two registers (8 columns) at a time.

    Registers 2 k and 2 k + 1 of lane c become those of part c of lane k. A lane's own 32 columns would be
    stored in parts of 16 bytes, 64 bytes from those of the next lane; parts k of the quad are neighbours.
    """
    upper = (lane & 1) != 0
    even0, even1 = _trade(r[0], r[2], upper, lane ^ 1, ASM)
    odd0, odd1 = _trade(r[1], r[3], upper, lane ^ 1, ASM)
    even2, even3 = _trade(r[4], r[6], upper, lane ^ 1, ASM)
    odd2, odd3 = _trade(r[5], r[7], upper, lane ^ 1, ASM)
    upper = (lane & 2) != 0
    even0, even2 = _trade(even0, even2, upper, lane ^ 2, ASM)
    odd0, odd2 = _trade(odd0, odd2, upper, lane ^ 2, ASM)
    even1, even3 = _trade(even1, even3, upper, lane ^ 2, ASM)
    odd1, odd3 = _trade(odd1, odd3, upper, lane ^ 2, ASM)
    return even0, odd0, even1, odd1, even2, odd2, even3, odd3
