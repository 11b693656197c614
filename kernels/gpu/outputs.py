"""What a product does with its sums: a norm's common factor, a bias, the residual stream, and the store."""

# A return under a constexpr `if` needs its `else`: triton would compile what follows it as well.

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from kernels.gpu.activation import inverse_rms
from kernels.gpu.conversions import as_type


@triton.jit
def norm_squares(
    squares: tl.tensor, m: tl.tensor, chunks: tl.tensor, NORMED: tl.constexpr, CHUNKS: tl.constexpr
) -> Any:
    """Vector m's sums of squares by chunk, float32 [CHUNKS]; to be read as early as `outputs_before`."""
    chunk = tl.arange(0, CHUNKS)
    sums = chunk.to(tl.float32)
    if NORMED:
        sums = tl.load(squares + m * chunks + chunk, mask=chunk < chunks, other=0.0)
    return sums


@triton.jit
def common_factor(sums: tl.tensor, columns: tl.tensor, eps: tl.tensor, NORMED: tl.constexpr) -> Any:
    """1 / rms of a vector by its `norm_squares`; 1 without a norm."""
    factor = 1.0
    if NORMED:
        factor = inverse_rms(tl.sum(sums, 0), columns, eps)
    return factor


@triton.jit
def row_sums(lanes: tl.tensor, WARPS: tl.constexpr) -> Any:
    """Sums over warps, and over the four lanes of each of 8 rows: float32 [8]."""
    return tl.sum(tl.sum(tl.reshape(lanes, [WARPS, 8, 4]), 2), 0)


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
