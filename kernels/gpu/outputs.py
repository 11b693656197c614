"""What a product does with its sums: a bias, the residual stream, and the store."""

# A return under a constexpr `if` needs its `else`: triton would compile what follows it as well.

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from kernels.gpu.conversions import as_type


@triton.jit
def outputs_before(
    out: tl.tensor,
    bias: tl.tensor,
    at: tl.tensor,
    row: tl.tensor,
    inside: tl.tensor,
    ADD: tl.constexpr,
    BIAS: tl.constexpr,
) -> Any:
    """float32 that is added to the sums of outputs `at`: what is there already (ADD), and the row's bias.

    To be read before the long part of a product: after it the reading would be waited for.
    """
    before = (row * 0).to(tl.float32)
    if ADD:
        before += tl.load(out + at, mask=inside, other=0.0).to(tl.float32)
    if BIAS:
        before += tl.load(bias + row, mask=inside, other=0.0)
    return before


@triton.jit
def store_outputs(
    out: tl.tensor, at: tl.tensor, value: tl.tensor, inside: tl.tensor, ASM: tl.constexpr
) -> None:
    """Store float32 values in the type of `out`."""
    tl.store(out + at, as_type(value, out.dtype.element_ty, ASM), mask=inside)
