"""The dense product kernel: whole rows of bf16 weights times one float32 vector, with prologue and epilogue.

Memory decides its time, so a program has all loads of a part of its rows under way at once and keeps sums for
every column it holds; they are put together at the end. The norm's common factor is applied there too, so
that nothing waits for it.
"""

# mypy: disable-error-code="assignment, misc"

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from kernels.gpu.activation import activation, gelu_tanh, inverse_rms
from kernels.gpu.chaining import follow
from kernels.gpu.outputs import outputs_before, store_outputs


@triton.jit
def _tile(lines: tl.tensor, first: tl.tensor, columns: tl.tensor, BLOCK: tl.constexpr) -> tl.tensor:
    """Weights [ROWS, BLOCK] of rows that begin at `lines`, read once."""
    at = first + tl.arange(0, BLOCK)
    inside = (at < columns)[None, :]
    return tl.load(lines[:, None] + at[None, :], mask=inside, other=0.0, eviction_policy="evict_first")


@triton.jit
def _added(
    state: tl.tuple,
    weight: tl.tensor,
    sources: tl.tuple,
    first: tl.tensor,
    columns: tl.tensor,
    PROLOGUE: tl.constexpr,
    BLOCK: tl.constexpr,
) -> Any:
    """Sums [ROWS, BLOCK] and squares [BLOCK] with one tile more."""
    x, other, _ = sources
    sums, squares = state
    at = first + tl.arange(0, BLOCK)
    value, raw = activation(x, other, x, at, at < columns, PROLOGUE, False)
    sums += weight.to(tl.float32) * value[None, :]
    if PROLOGUE == 1:
        squares += raw * raw
    return sums, squares


@triton.jit
def _row_sums(
    matrix: tl.tensor,
    row: tl.tensor,
    sources: tl.tuple,
    columns: tl.tensor,
    PROLOGUE: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    CHAINED: tl.constexpr,
) -> Any:
    """Sums [ROWS] of weight * value, the common factor of the values still left out, and that factor.

    The first tile of weights, which depends on nothing, is read while the kernel before still runs.
    """
    lines = matrix + row.to(tl.int64) * columns
    weight = _tile(lines, 0, columns, BLOCK)
    follow(CHAINED)
    state = (tl.zeros([ROWS, BLOCK], tl.float32), tl.zeros([BLOCK], tl.float32))
    state = _added(state, weight, sources, 0, columns, PROLOGUE, BLOCK)
    for first in range(BLOCK, columns, BLOCK):
        weight = _tile(lines, first, columns, BLOCK)
        state = _added(state, weight, sources, first, columns, PROLOGUE, BLOCK)
    common = 1.0
    if PROLOGUE == 1:
        common = inverse_rms(tl.sum(state[1], 0), columns, sources[2])
    return tl.sum(state[0], 1), common


@triton.jit
def dense_kernel(
    matrix: tl.tensor,
    x: tl.tensor,
    other: tl.tensor,
    out: tl.tensor,
    bias: tl.tensor,
    rows: tl.tensor,
    columns: tl.tensor,
    eps: tl.tensor,
    PROLOGUE: tl.constexpr,
    ADD: tl.constexpr,
    BIAS: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    CHAINED: tl.constexpr,
    ASM: tl.constexpr,
) -> None:
    """out[row] = weight row . x; see `product.dense_product`."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = row < rows
    source = tl.minimum(row, rows - 1)
    sums, common = _row_sums(matrix, source, (x, other, eps), columns, PROLOGUE, ROWS, BLOCK, CHAINED)
    before = outputs_before(out, bias, row, row, inside, ADD, BIAS)
    store_outputs(out, row, sums * common + before, inside, ASM)


@triton.jit
def dense_gate_kernel(
    matrix: tl.tensor,
    x: tl.tensor,
    other: tl.tensor,
    out: tl.tensor,
    bias: tl.tensor,
    rows: tl.tensor,
    columns: tl.tensor,
    eps: tl.tensor,
    PROLOGUE: tl.constexpr,
    GELU: tl.constexpr,
    BIAS: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    CHAINED: tl.constexpr,
    ASM: tl.constexpr,
) -> None:
    """out[row] = silu or gelu(weight row . x) * (weight row `rows` further . x)."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = row < rows
    source = tl.minimum(row, rows - 1)
    sources = (x, other, eps)
    # Both rows of a pair lie in one tile, so that all loads are under way together.
    both = tl.reshape(tl.join(source, source + rows), [2 * ROWS])
    sums, common = _row_sums(matrix, both, sources, columns, PROLOGUE, 2 * ROWS, BLOCK, CHAINED)
    gate, up = tl.split(tl.reshape(sums * common, [ROWS, 2]))
    if BIAS:
        gate += tl.load(bias + row, mask=inside, other=0.0)
        up += tl.load(bias + rows + row, mask=inside, other=0.0)
    value = gelu_tanh(gate) * up if GELU else gate / (1.0 + tl.exp(-gate)) * up
    store_outputs(out, row, value, inside, ASM)
