"""The table product's kernel: fetchers first, then a program for every group of 8 rows."""

# Triton's tuples grow by `+` alone, and a constexpr `if` must stand by itself.
# ruff: noqa: RUF005, SIM102
# mypy: disable-error-code="assignment, misc"

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from kernels.gpu.chaining import follow
from kernels.gpu.dec.fetch_kernel import fetch_role
from kernels.gpu.lowbit.table_lookup import add_step, row_entries, selectors_of
from kernels.gpu.lowbit.tables import FACTORS, SUPERSTEP
from kernels.gpu.outputs import outputs_before, store_outputs
from kernels.gpu.registers import lane_words

_FACTOR3 = tl.constexpr(FACTORS[3])
_FACTOR4 = tl.constexpr(FACTORS[4])
_SUPERSTEP = tl.constexpr(SUPERSTEP)


@triton.jit
def _add_steps(
    sums: tl.tuple,
    words: tl.tensor,
    entries: tl.tuple,
    digits: tl.tensor,
    lane: tl.tensor,
    STEPS: tl.constexpr,
    BITS: tl.constexpr,
    BATCH: tl.constexpr,
    ASM: tl.constexpr,
) -> Any:
    """Add STEPS steps, whose words and digits begin at the pointers."""
    loaded = lane_words(words, lane, STEPS * BITS, ASM)
    for s in tl.static_range(STEPS):
        selectors = selectors_of(loaded, s * BITS, BITS)
        sums = add_step(sums, selectors, entries, digits + s * (BATCH * 128) + lane * 4, BITS, BATCH, ASM)
    return sums


@triton.jit
def _sums(
    words: tl.tensor,
    entries: tl.tuple,
    digits: tl.tensor,
    lane: tl.tensor,
    warp: tl.tensor,
    whole: tl.tensor,
    tail: tl.tensor,
    BITS: tl.constexpr,
    BATCH: tl.constexpr,
    TAIL: tl.constexpr,
    WARPS: tl.constexpr,
    ASM: tl.constexpr,
) -> Any:
    """The lane's share of the sums of high and low bytes times digit lane % 4: 2 * BATCH int32.

    The warps take turns at supersteps; one that has none left repeats the last one with digits of zero, which
    follow the digits of the last step.
    """
    STEP: tl.constexpr = BATCH * 128
    steps = whole * _SUPERSTEP + tail
    sums = (lane * 0,) * (8 * BATCH)
    for first in range(0, whole, WARPS):
        at = tl.minimum(first + warp, whole - 1)
        step = tl.where(first + warp < whole, at * _SUPERSTEP, steps)
        part = words + at * (_SUPERSTEP * BITS * 32)
        sums = _add_steps(sums, part, entries, digits + step * STEP, lane, _SUPERSTEP, BITS, BATCH, ASM)
    if TAIL:
        for first in range(0, tail, WARPS):
            at = whole * _SUPERSTEP + tl.minimum(first + warp, tail - 1)
            step = tl.where(first + warp < tail, at, steps)
            part = words + at * (BITS * 32)
            sums = _add_steps(sums, part, entries, digits + step * STEP, lane, 1, BITS, BATCH, ASM)
    combined = ()
    for n in tl.static_range(2 * BATCH):
        combined = combined + (sums[4 * n] + sums[4 * n + 3],)
    return combined


@triton.jit
def _digit_sums(
    digit_sums: tl.tensor, m: tl.constexpr, chunks: tl.tensor, digit: tl.tensor, CHUNKS: tl.constexpr
) -> Any:
    """Sums of vector m's digits, int32 [CHUNKS, 4]: not yet added up, so that loads overlap the long part."""
    chunk = tl.arange(0, CHUNKS)[:, None]
    at = digit_sums + (m * chunks + chunk) * 4 + digit
    return tl.load(at, mask=chunk < chunks, other=0)


@triton.jit
def _by_row(sums: tl.tensor, WARPS: tl.constexpr) -> Any:
    """Sums of every row and digit, float32 [8, 4]."""
    return tl.sum(tl.reshape(sums, [WARPS, 8, 4]), 0).to(tl.float32)


@triton.jit
def _group(
    weights: tl.tuple,
    inputs: tl.tuple,
    outputs: tl.tuple,
    group: tl.tensor,
    rows: tl.tensor,
    whole: tl.tensor,
    tail: tl.tensor,
    thread: tl.tensor,
    BITS: tl.constexpr,
    BATCH: tl.constexpr,
    USED: tl.constexpr,
    TAIL: tl.constexpr,
    CHUNKS: tl.constexpr,
    ADD: tl.constexpr,
    BIAS: tl.constexpr,
    WARPS: tl.constexpr,
    ASM: tl.constexpr,
) -> None:
    """The product of one group of 8 rows with all vectors."""
    words, entries, zero, step = weights
    digits, digit_sums, x_scale, chunks = inputs
    out, bias = outputs
    lane = thread % 32
    table = row_entries(entries + (group * 8 + lane // 4) * (1 << (BITS - 1)), BITS, ASM)
    row = group * 8 + tl.arange(0, 8)
    inside = row < rows
    # Loaded before the long part, needed after it: their latencies would follow one another there.
    row_step = tl.load(step + row, mask=inside, other=0.0)
    row_zero = tl.load(zero + row, mask=inside, other=0.0)
    digit = tl.arange(0, 4)[None, :]
    totals = ()
    scales = ()
    before = ()
    for m in tl.static_range(USED):
        before = before + (outputs_before(out, bias, m * rows + row, row, inside, ADD, BIAS),)
        scales = scales + (tl.load(x_scale + m),)
        if BITS == 4:
            totals = totals + (_digit_sums(digit_sums, m, chunks, digit, CHUNKS),)
    own = words + group.to(tl.int64) * ((whole * _SUPERSTEP + tail) * (BITS * 32))
    sums = _sums(own, table, digits, lane, thread // 32, whole, tail, BITS, BATCH, TAIL, WARPS, ASM)
    power = tl.exp2((8 * digit).to(tl.float32))
    FACTOR: tl.constexpr = _FACTOR3 if BITS == 3 else _FACTOR4
    for m in tl.static_range(USED):
        by_digit = _by_row(sums[2 * m], WARPS) * FACTOR + _by_row(sums[2 * m + 1], WARPS)
        if BITS == 4:
            by_digit += row_zero[:, None] * tl.sum(totals[m], 0).to(tl.float32)[None, :]
        value = tl.sum(by_digit * power, 1) * (scales[m] * row_step)
        store_outputs(out, m * rows + row, value + before[m], inside, ASM)


_SIZES = ("rows", "whole", "tail", "chunks", "fetchers", "fetch_groups", "fetch_words", "fetch_columns")


# fmt: off
@triton.jit(do_not_specialize=_SIZES)
def table_kernel(
    words: tl.tensor, entries: tl.tensor, zero: tl.tensor, step: tl.tensor, digits: tl.tensor,
    digit_sums: tl.tensor, x_scale: tl.tensor, out: tl.tensor, bias: tl.tensor, residual: tl.tensor,
    channels: tl.tensor, values: tl.tensor, control: tl.tensor, partial: tl.tensor, rows: tl.tensor,
    whole: tl.tensor, tail: tl.tensor, chunks: tl.tensor, fetchers: tl.tensor, fetch_groups: tl.tensor,
    fetch_words: tl.tensor, fetch_columns: tl.tensor, BITS: tl.constexpr, BATCH: tl.constexpr,
    USED: tl.constexpr, TAIL: tl.constexpr, CHUNKS: tl.constexpr, ADD: tl.constexpr, BIAS: tl.constexpr,
    FETCH: tl.constexpr, FETCH_ROWS: tl.constexpr, FETCH_SPLITS: tl.constexpr, FETCH_AHEAD: tl.constexpr,
    WARPS: tl.constexpr, CHAINED: tl.constexpr, ASM: tl.constexpr,
) -> None:
    # fmt: on
    """out[m, row] = step * sum((number + zero) * x_m); see `table_product.table_product`."""
    program = tl.program_id(0)
    thread = tl.arange(0, 32 * WARPS)
    follow(CHAINED)
    if FETCH:
        if program < fetchers:
            listing = (residual, channels, values, control, partial)
            shape = (fetch_groups, fetch_words, fetch_columns)
            fetch_role(listing, shape, program, thread, FETCH_ROWS, FETCH_SPLITS, FETCH_AHEAD, ASM)
    if program >= fetchers:
        weights = (words, entries, zero, step)
        inputs = (digits, digit_sums, x_scale, chunks)
        group = program - fetchers
        _group(
            weights, inputs, (out, bias), group, rows, whole, tail, thread,
            BITS, BATCH, USED, TAIL, CHUNKS, ADD, BIAS, WARPS, ASM,
        )  # fmt: skip
