"""The kernel of `decode.decode_attention`: one token's attention over the cache of one layer.

A program reads a share of one head's positions for all query heads of its group. The first block of keys and
values is asked for before anything is known of the queries, every other one while the one before is computed.
"""

# A return under a constexpr `if` needs its `else`: triton would compile what follows it as well.
# ruff: noqa: RET505

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from kernels.gpu.attention.blocks import head_cache, prefetch_block, read_block, with_new
from kernels.gpu.attention.combine import arrive, combined, store_partial
from kernels.gpu.attention.heads import (
    head_outputs,
    one_head,
    prefetch_outputs,
    prefetch_run,
    rope_factors,
    rotated_heads,
    stored_row,
)
from kernels.gpu.chaining import follow

# Rows of a tensor core's tile. The query heads of a group fill it by repetition: what is computed in the
# rows beyond the group is never stored.
_TILE = tl.constexpr(16)
# Positions that a layer without a window sees.
NO_WINDOW = 1 << 30
# Shares that one program reads sooner than several do, which combine what they found.
_ALONE = tl.constexpr(2)
_LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
def share(
    here: tl.tensor,
    window: tl.tensor,
    split: tl.tensor,
    SPLITS: tl.constexpr,
    SHARE: tl.constexpr,
) -> Any:
    """The places begin .. end - 1 of program `split`, and how many programs have a share.

    A place is a cached position; that before the first visible one (-1 even) stands for the new token, so
    that it is the first of program 0. The addresses of keys wait for `begin`: it takes no division but by
    constants.
    """
    first = tl.maximum(here - window + 1, 0)
    count = here - first + 1
    each = tl.where(count <= _ALONE * SHARE, _ALONE * SHARE, tl.maximum(tl.cdiv(count, SPLITS), SHARE))
    begin = first - 1 + split * each
    return begin, tl.minimum(begin + each, here), tl.cdiv(count, each)


@triton.jit
def _operand(values: tl.tensor, ASM: tl.constexpr) -> Any:
    """For `_dot`: bf16 on tensor cores; float32 otherwise, where every product is exact."""
    if ASM:
        return values.to(tl.bfloat16)
    else:
        return values.to(tl.float32)


@triton.jit
def _dot(a: tl.tensor, b: tl.tensor, ASM: tl.constexpr) -> Any:
    return tl.dot(_operand(a, ASM), _operand(b, ASM), input_precision="ieee")


@triton.jit
def _repeated(rows: tl.tensor) -> Any:
    """[ROWS, WIDTH] -> [16, WIDTH], row r from row r % ROWS."""
    ROWS: tl.constexpr = rows.shape[0]
    WIDTH: tl.constexpr = rows.shape[1]
    return tl.reshape(tl.broadcast_to(rows[None, :, :], [_TILE // ROWS, ROWS, WIDTH]), [_TILE, WIDTH])


@triton.jit
def _attended(
    q: tl.tensor,
    cache: tl.tuple,
    block: tl.tuple,
    begin: tl.tensor,
    end: tl.tensor,
    HEAD_DIM: tl.constexpr,
    QUANTISED: tl.constexpr,
    ASM: tl.constexpr,
) -> Any:
    """Online softmax of q [16, WIDTH] over a share of places, as `store_partial` takes it.

    block = the first `read_block`. Scores are logarithms of base 2.
    """
    WIDTH: tl.constexpr = q.shape[1]
    BLOCK: tl.constexpr = block[0].shape[0]
    k, v = block[0], block[1]
    if QUANTISED:
        k_scales, v_scales = block[2], block[3]
    sums = tl.zeros([_TILE, WIDTH], tl.float32)
    top = tl.full([_TILE], float("-inf"), tl.float32)
    # Weights are summed up by column, and over the columns only once: that takes barriers.
    weights = tl.zeros([_TILE, BLOCK], tl.float32)
    operand = _operand(q, ASM)
    for start in range(begin, end, BLOCK):
        following = read_block(cache, start + BLOCK, end, BLOCK, HEAD_DIM, WIDTH, QUANTISED)
        scores = _dot(operand, tl.trans(k), ASM)
        if QUANTISED:
            scores *= k_scales[None, :]
            k_scales = following[2]
        scores = tl.where((start + tl.arange(0, BLOCK) < end)[None, :], scores, float("-inf"))
        higher = tl.maximum(top, tl.max(scores, 1))
        fade = tl.exp2(top - higher)
        p = tl.exp2(scores - higher[:, None])
        weights = weights * fade[:, None] + p
        if QUANTISED:
            p *= v_scales[None, :]
            v_scales = following[3]
        sums = sums * fade[:, None] + _dot(p, v, ASM)
        top, k, v = higher, following[0], following[1]
    return sums, top, tl.sum(weights, 1)


@triton.jit
def _finish(
    out: tl.tensor,
    buffers: tl.tuple,
    head: tl.tensor,
    split: tl.tensor,
    active: tl.tensor,
    result: tl.tuple,
    GROUP: tl.constexpr,
    ROWS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    SPLITS: tl.constexpr,
) -> None:
    """Outputs of a group: of a program that is alone, or by the last of several."""
    WIDTH: tl.constexpr = result[0].shape[1]
    outputs = out + head * GROUP * HEAD_DIM
    if active == 1:
        _store_output(outputs, result[0] / result[2][:, None], GROUP, HEAD_DIM)
    else:
        store_partial(buffers, head, split, result, ROWS, WIDTH, SPLITS)
        if arrive(buffers[2] + head, active):
            _store_output(outputs, combined(buffers, head, active, ROWS, WIDTH, SPLITS), GROUP, HEAD_DIM)


@triton.jit
def _store_output(out: tl.tensor, rows: tl.tensor, GROUP: tl.constexpr, HEAD_DIM: tl.constexpr) -> None:
    row = tl.arange(0, rows.shape[0])[:, None]
    dim = tl.arange(0, rows.shape[1])[None, :]
    tl.store(out + row * HEAD_DIM + dim, rows, mask=(row < GROUP) & (dim < HEAD_DIM))


@triton.jit
def _prefetch(
    constants: tl.tuple,
    head: tl.tensor,
    GROUP: tl.constexpr,
    ROWS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    WIDTH: tl.constexpr,
    NORM: tl.constexpr,
    BIAS: tl.constexpr,
    CORRECTIONS: tl.constexpr,
    ASM: tl.constexpr,
) -> None:
    """Bring constants nearer while the kernel before still runs: (bias, residual scale, norms of q and k)."""
    if BIAS:
        prefetch_outputs(constants[0], head, GROUP, ROWS, HEAD_DIM, WIDTH, ASM)
    if CORRECTIONS > 0:
        prefetch_outputs(constants[1], head, GROUP, ROWS, HEAD_DIM, WIDTH, ASM)
    if NORM:
        prefetch_run(constants[2], HEAD_DIM, WIDTH, ASM)
        prefetch_run(constants[3], HEAD_DIM, WIDTH, ASM)


# fmt: off
@triton.jit(do_not_specialize=("stride", "context", "window"))
def decode_attention_kernel(
    qkv: tl.tensor, bias: tl.tensor, q_norm: tl.tensor, k_norm: tl.tensor, fetched: tl.tensor,
    residual_scale: tl.tensor, common: tl.tensor, control: tl.tensor, cos: tl.tensor, sin: tl.tensor,
    position: tl.tensor, keys: tl.tensor, values: tl.tensor, key_scales: tl.tensor, value_scales: tl.tensor,
    out: tl.tensor, partial: tl.tensor, weights: tl.tensor, arrived: tl.tensor, stride: tl.tensor,
    context: tl.tensor, window: tl.tensor, scale: tl.tensor, eps: tl.tensor, GROUP: tl.constexpr,
    ROWS: tl.constexpr, HEAD_DIM: tl.constexpr, WIDTH: tl.constexpr, HALF: tl.constexpr,
    BLOCK: tl.constexpr, SPLITS: tl.constexpr, SHARE: tl.constexpr, NORM: tl.constexpr, BIAS: tl.constexpr,
    CORRECTIONS: tl.constexpr, QUANTISED: tl.constexpr, SETTLED: tl.constexpr,
    CHAINED: tl.constexpr, ASM: tl.constexpr,
) -> None:
    # fmt: on
    """Program (head, split); see `decode.decode_attention`."""
    head, split = tl.program_id(0), tl.program_id(1)
    if CHAINED:
        constants = (bias, residual_scale, q_norm, k_norm)
        _prefetch(constants, head, GROUP, ROWS, HEAD_DIM, WIDTH, NORM, BIAS, CORRECTIONS, ASM)
    # What is settled is read while the kernel before still runs, and the next block brought nearer.
    follow(CHAINED and not SETTLED)
    here = tl.load(position)
    begin, end, active = share(here, window, split, SPLITS, SHARE)
    cache = head_cache(keys, values, key_scales, value_scales, head.to(tl.int64) * context, HEAD_DIM)
    block = read_block(cache, begin, end, BLOCK, HEAD_DIM, WIDTH, QUANTISED)
    if CHAINED and SETTLED:
        prefetch_block(cache, begin + BLOCK, end, BLOCK, HEAD_DIM, WIDTH, ASM)
    rope = rope_factors(cos, sin, here, ROWS, WIDTH, HALF)
    follow(CHAINED and SETTLED)
    if split < active:
        source = (qkv, bias, (fetched, residual_scale, common, control), stride)
        first, key, value = head_outputs(head, GROUP, HEAD_DIM)
        q = rotated_heads(source, first, q_norm, rope, eps, GROUP, HEAD_DIM, HALF, NORM, BIAS, CORRECTIONS)
        if split == 0:
            one = rope_factors(cos, sin, here, 1, WIDTH, HALF)
            k = rotated_heads(source, key, k_norm, one, eps, 1, HEAD_DIM, HALF, NORM, BIAS, CORRECTIONS)
            v = one_head(source, value, HEAD_DIM, WIDTH, BIAS, CORRECTIONS)
            new = (stored_row(k, QUANTISED, ASM), stored_row(v, QUANTISED, ASM))
            block = with_new(cache, here, block, new, HEAD_DIM, QUANTISED)
        q = _repeated(q * (scale * _LOG2_E))
        result = _attended(q, cache, block, begin, end, HEAD_DIM, QUANTISED, ASM)
        buffers = (partial, weights, arrived)
        _finish(out, buffers, head, split, active, result, GROUP, ROWS, HEAD_DIM, SPLITS)
