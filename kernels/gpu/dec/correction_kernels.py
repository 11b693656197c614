"""Kernels of `correction`: the fetch role alone, and the sum of what was fetched."""

from __future__ import annotations

import triton
import triton.language as tl

from kernels.gpu.activation import gelu_tanh
from kernels.gpu.chaining import follow
from kernels.gpu.conversions import as_type
from kernels.gpu.dec.fetch_kernel import fetch_role


@triton.jit(do_not_specialize=("groups", "words", "columns"))
def fetch_kernel(
    residual: tl.tensor,
    channels: tl.tensor,
    values: tl.tensor,
    control: tl.tensor,
    partial: tl.tensor,
    groups: tl.tensor,
    words: tl.tensor,
    columns: tl.tensor,
    WARPS: tl.constexpr,
    ROWS: tl.constexpr,
    SPLITS: tl.constexpr,
    AHEAD: tl.constexpr,
    CHAINED: tl.constexpr,
    ASM: tl.constexpr,
) -> None:
    """Nothing but the fetch role; see `correction.fetch_correction`."""
    follow(CHAINED)
    listing = (residual, channels, values, control, partial)
    shape = (groups, words, columns)
    fetch_role(listing, shape, tl.program_id(0), tl.arange(0, 32 * WARPS), ROWS, SPLITS, AHEAD, ASM)


@triton.jit
def correction_sum(
    corrections: tl.tuple, at: tl.tensor, mask: tl.tensor, stride: tl.tensor, SPLITS: tl.constexpr
) -> tl.tensor:
    """The correction float32 of outputs `at`, 0 while k_chunk in effect is 0.

    corrections = (partial, scale, common, control); `stride` values lie between the partial sums of two
    splits. They are read before it is known whether they hold anything: one wait less.
    """
    partial, scale, common, control = corrections
    total = tl.load(partial + at, mask=mask, other=0.0)
    for split in tl.static_range(1, SPLITS):
        total += tl.load(partial + split * stride + at, mask=mask, other=0.0)
    total *= tl.load(scale + at, mask=mask, other=0.0) * tl.load(common)
    return tl.where(tl.load(control + 1) > 0, total, 0.0)


@triton.jit(do_not_specialize=("rows", "stride"))
def add_correction_kernel(
    out: tl.tensor,
    partial: tl.tensor,
    scale: tl.tensor,
    common: tl.tensor,
    control: tl.tensor,
    rows: tl.tensor,
    stride: tl.tensor,
    SPLITS: tl.constexpr,
    BLOCK: tl.constexpr,
    CHAINED: tl.constexpr,
    ASM: tl.constexpr,
) -> None:
    """out += correction."""
    follow(CHAINED)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < rows
    value = tl.load(out + at, mask=inside, other=0.0).to(tl.float32)
    corrections = (partial, scale, common, control)
    value += correction_sum(corrections, at, inside, stride, SPLITS)
    tl.store(out + at, as_type(value, out.dtype.element_ty, ASM), mask=inside)


@triton.jit(do_not_specialize=("middle", "stride"))
def gate_kernel(
    out: tl.tensor,
    gated: tl.tensor,
    partial: tl.tensor,
    scale: tl.tensor,
    common: tl.tensor,
    control: tl.tensor,
    middle: tl.tensor,
    stride: tl.tensor,
    GELU: tl.constexpr,
    SPLITS: tl.constexpr,
    BLOCK: tl.constexpr,
    CHAINED: tl.constexpr,
    ASM: tl.constexpr,
) -> None:
    """gated = silu or gelu(first half of out) * second half, both with their corrections."""
    follow(CHAINED)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < middle
    gate = tl.load(out + at, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(out + middle + at, mask=inside, other=0.0).to(tl.float32)
    corrections = (partial, scale, common, control)
    gate += correction_sum(corrections, at, inside, stride, SPLITS)
    up += correction_sum(corrections, middle + at, inside, stride, SPLITS)
    value = gelu_tanh(gate) * up if GELU else gate / (1.0 + tl.exp(-gate)) * up
    tl.store(gated + at, as_type(value, gated.dtype.element_ty, ASM), mask=inside)
