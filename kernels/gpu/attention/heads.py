"""From a product's outputs to the heads of the new token: bias, correction, norm, RoPE, storage format."""

# A return under a constexpr `if` needs its `else`: triton would compile what follows it as well.
# ruff: noqa: RET505

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from kernels.gpu.activation import inverse_rms
from kernels.gpu.chaining import prefetch
from kernels.gpu.conversions import as_type
from kernels.gpu.dec.correction_kernels import correction_sum

# Of `cache.quantise_rows`.
# The bits of 1e-30.
_LEAST_MAGNITUDE = tl.constexpr(0x0DA24260)
_STEP = tl.constexpr(1 / 127)
# Adding and taking away 1.5 * 2^23 rounds a float32 to the nearest whole number, ties to even.
_ROUNDER = tl.constexpr(12582912.0)


@triton.jit
def head_outputs(head: tl.tensor, GROUP: tl.constexpr, HEAD_DIM: tl.constexpr) -> Any:
    """First outputs of the product that are a program's queries, key and value."""
    heads = tl.num_programs(0)
    key = (heads * GROUP + head) * HEAD_DIM
    return head * GROUP * HEAD_DIM, key, key + heads * HEAD_DIM


@triton.jit
def prefetch_run(vector: tl.tensor, COUNT: tl.constexpr, SPAN: tl.constexpr, ASM: tl.constexpr) -> None:
    """Bring COUNT float32 values nearer; SPAN is the power of two at or above."""
    LINES: tl.constexpr = (SPAN + 31) // 32
    prefetch(vector + tl.minimum(tl.arange(0, LINES) * 32, COUNT - 1), ASM)


@triton.jit
def prefetch_outputs(
    vector: tl.tensor,
    head: tl.tensor,
    GROUP: tl.constexpr,
    ROWS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    WIDTH: tl.constexpr,
    ASM: tl.constexpr,
) -> None:
    """Bring nearer what a program reads of a vector over all outputs."""
    queries, key, value = head_outputs(head, GROUP, HEAD_DIM)
    prefetch_run(vector + queries, GROUP * HEAD_DIM, ROWS * WIDTH, ASM)
    prefetch_run(vector + key, HEAD_DIM, WIDTH, ASM)
    prefetch_run(vector + value, HEAD_DIM, WIDTH, ASM)


@triton.jit
def rope_factors(
    cos: tl.tensor,
    sin: tl.tensor,
    position: tl.tensor,
    ROWS: tl.constexpr,
    WIDTH: tl.constexpr,
    HALF: tl.constexpr,
) -> Any:
    """Two [ROWS, WIDTH], every row alike: a rotated dimension is itself times the first + its partner times
    the second.

    Read for every row, as the heads are: so no thread hands anything to another.
    """
    dim = tl.arange(0, WIDTH)[None, :] + tl.zeros([ROWS, 1], tl.int32)
    at = position * HALF + tl.where(dim < HALF, dim, dim - HALF)
    cosine = tl.load(cos + at, mask=dim < 2 * HALF, other=1.0)
    sine = tl.load(sin + at, mask=dim < 2 * HALF, other=0.0)
    return cosine, tl.where(dim < HALF, -sine, sine)


@triton.jit
def outputs(
    source: tl.tuple, at: tl.tensor, inside: tl.tensor, BIAS: tl.constexpr, CORRECTIONS: tl.constexpr
) -> Any:
    """Outputs `at` of the product, float32, with bias and correction (CORRECTIONS partial sums, 0: none).

    source = (product, bias, corrections as in `correction_sum`, their stride).
    """
    product, bias, corrections, stride = source
    value = tl.load(product + at, mask=inside, other=0.0)
    if BIAS:
        value += tl.load(bias + at, mask=inside, other=0.0)
    if CORRECTIONS > 0:
        value += correction_sum(corrections, at, inside, stride, CORRECTIONS)
    return value


@triton.jit
def one_head(
    source: tl.tuple,
    first: tl.tensor,
    HEAD_DIM: tl.constexpr,
    WIDTH: tl.constexpr,
    BIAS: tl.constexpr,
    CORRECTIONS: tl.constexpr,
) -> Any:
    """float32 [1, WIDTH], zeros beyond HEAD_DIM: the head that begins at output `first`."""
    dim = tl.arange(0, WIDTH)[None, :]
    return outputs(source, first + dim, dim < HEAD_DIM, BIAS, CORRECTIONS)


@triton.jit
def rotated_heads(
    source: tl.tuple,
    first: tl.tensor,
    norm: tl.tensor,
    factors: tl.tuple,
    eps: tl.tensor,
    COUNT: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    HALF: tl.constexpr,
    NORM: tl.constexpr,
    BIAS: tl.constexpr,
    CORRECTIONS: tl.constexpr,
) -> Any:
    """float32 [ROWS, WIDTH], zeros outside of COUNT x HEAD_DIM: heads from output `first` on, after RoPE.

    factors = `rope_factors` of that shape. Partners are read again rather than fetched from other threads.
    """
    ROWS: tl.constexpr = factors[0].shape[0]
    WIDTH: tl.constexpr = factors[0].shape[1]
    row = tl.arange(0, ROWS)[:, None]
    dim = tl.arange(0, WIDTH)[None, :]
    partner = tl.where(dim < HALF, dim + HALF, dim - HALF)
    inside = (row < COUNT) & (dim < HEAD_DIM)
    own = outputs(source, first + row * HEAD_DIM + dim, inside, BIAS, CORRECTIONS)
    other = outputs(source, first + row * HEAD_DIM + partner, inside, BIAS, CORRECTIONS)
    if NORM:
        common = inverse_rms(tl.sum(own * own, 1), HEAD_DIM, eps)[:, None]
        own *= common * tl.load(norm + row * 0 + dim, mask=inside, other=0.0)
        other *= common * tl.load(norm + row * 0 + partner, mask=inside, other=0.0)
    return own * factors[0] + other * factors[1]


@triton.jit
def stored_row(row: tl.tensor, QUANTISED: tl.constexpr, ASM: tl.constexpr) -> Any:
    """A row [1, WIDTH] as the cache holds it, and its scale [1].

    As `cache.quantise_rows`; its division is the exact one, which a multiplication fused with the rounding
    would not be.
    """
    if QUANTISED:
        # By bits, of which those of what is not a number are the largest: maxima of floats leave it out.
        largest = tl.max(tl.abs(row).to(tl.int32, bitcast=True), 1)
        scale = tl.maximum(largest, _LEAST_MAGNITUDE).to(tl.float32, bitcast=True) * _STEP
        codes = (tl.div_rn(row, tl.broadcast_to(scale[:, None], row.shape)) + _ROUNDER) - _ROUNDER
        return codes.to(tl.int8), scale
    else:
        return as_type(row, tl.bfloat16, ASM), tl.zeros([1], tl.float32)
