"""Blocks of a layer's cache as a kernel reads them, and the new token's row in the first of them."""

# A return under a constexpr `if` needs its `else`: triton would compile what follows it as well.
# ruff: noqa: RET505

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from kernels.gpu.chaining import prefetch


@triton.jit
def head_cache(
    keys: tl.tensor,
    values: tl.tensor,
    key_scales: tl.tensor,
    value_scales: tl.tensor,
    row: tl.tensor,
    HEAD_DIM: tl.constexpr,
) -> Any:
    """Where a head's keys, values and their scales begin, which are the layer's from `row` on."""
    return keys + row * HEAD_DIM, values + row * HEAD_DIM, key_scales + row, value_scales + row


@triton.jit
def _rows(
    stored: tl.tensor,
    start: tl.tensor,
    end: tl.tensor,
    BLOCK: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    WIDTH: tl.constexpr,
) -> Any:
    """[BLOCK, WIDTH] rows from position `start` on; zeros below 0 and from `end` on: anything lies there."""
    at = start + tl.arange(0, BLOCK)[:, None]
    dim = tl.arange(0, WIDTH)[None, :]
    inside = (at >= 0) & (at < end)
    if WIDTH != HEAD_DIM:
        inside = inside & (dim < HEAD_DIM)
    return tl.load(stored + at * HEAD_DIM + dim, mask=inside, other=0.0)


@triton.jit
def _scales(scales: tl.tensor, start: tl.tensor, end: tl.tensor, BLOCK: tl.constexpr) -> Any:
    at = start + tl.arange(0, BLOCK)
    return tl.load(scales + at, mask=(at >= 0) & (at < end), other=0.0)


@triton.jit
def read_block(
    cache: tl.tuple,
    start: tl.tensor,
    end: tl.tensor,
    BLOCK: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    WIDTH: tl.constexpr,
    QUANTISED: tl.constexpr,
) -> Any:
    """Keys and values of a block and, QUANTISED, their scales."""
    k = _rows(cache[0], start, end, BLOCK, HEAD_DIM, WIDTH)
    v = _rows(cache[1], start, end, BLOCK, HEAD_DIM, WIDTH)
    if QUANTISED:
        k_scales = _scales(cache[2], start, end, BLOCK)
        return k, v, k_scales, _scales(cache[3], start, end, BLOCK)
    else:
        return k, v


@triton.jit
def prefetch_block(
    cache: tl.tuple,
    start: tl.tensor,
    end: tl.tensor,
    BLOCK: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    WIDTH: tl.constexpr,
    ASM: tl.constexpr,
) -> None:
    """Bring the keys and values of a block nearer, what of it lies before `end`."""
    LINE: tl.constexpr = 1024 // cache[0].dtype.element_ty.primitive_bitwidth
    lines = tl.arange(0, BLOCK * WIDTH // LINE)
    at = tl.minimum(start * HEAD_DIM + lines * LINE, end * HEAD_DIM - 1)
    for part in tl.static_range(2):
        prefetch(cache[part] + tl.maximum(at, 0), ASM)


@triton.jit
def _store_new(
    cache: tl.tuple, here: tl.tensor, new: tl.tuple, HEAD_DIM: tl.constexpr, QUANTISED: tl.constexpr
) -> None:
    dim = tl.arange(0, new[0][0].shape[1])[None, :]
    for part in tl.static_range(2):
        row, scale = new[part]
        tl.store(cache[part] + here * HEAD_DIM + dim, row, mask=dim < HEAD_DIM)
        if QUANTISED:
            tl.store(cache[2 + part] + here + tl.arange(0, 1), scale)


@triton.jit
def with_new(
    cache: tl.tuple,
    here: tl.tensor,
    block: tl.tuple,
    new: tl.tuple,
    HEAD_DIM: tl.constexpr,
    QUANTISED: tl.constexpr,
) -> Any:
    """Store the new token's rows at position `here`; give `block` with them as its first row.

    new = ((key [1, WIDTH], scale [1]), (value, scale)), as stored.
    """
    _store_new(cache, here, new, HEAD_DIM, QUANTISED)
    BLOCK: tl.constexpr = block[0].shape[0]
    first = tl.arange(0, BLOCK) == 0
    k = tl.where(first[:, None], new[0][0], block[0])
    v = tl.where(first[:, None], new[1][0], block[1])
    if QUANTISED:
        k_scales = tl.where(first, new[0][1], block[2])
        return k, v, k_scales, tl.where(first, new[1][1], block[3])
    else:
        return k, v
