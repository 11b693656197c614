"""Choosing channels on a GPU: the program of one chunk of 1024; `prepare` runs it beside its own work."""

from __future__ import annotations

import triton
import triton.language as tl

from kernels.gpu.activation import activation
from kernels.gpu.dec.fetch_kernel import chunk_share
from kernels.gpu.primitives import store_float, store_word

BUCKETS = tl.constexpr(64)
BUCKET_SHIFT = tl.constexpr(20)


@triton.jit
def _last_whole(sizes: tl.tensor, k: tl.tensor) -> tl.tensor:
    """Of the buckets that k channels hold whole: their number * 2^16 + how many channels they have.

    Pairs of buckets are 32 values, which every warp has to itself: sums over them need no barriers. The last
    bucket is never taken whole.
    """
    even, odd = tl.split(tl.reshape(sizes, [BUCKETS // 2, 2]))
    pair = tl.arange(0, BUCKETS // 2)
    after = tl.cumsum(even + odd, 0)
    before = after - odd
    first = tl.where(before <= k, ((2 * pair + 1) << 16) | before, 0)
    second = tl.where((after <= k) & (pair < BUCKETS // 2 - 1), ((2 * pair + 2) << 16) | after, 0)
    return tl.max(tl.maximum(first, second), 0)


@triton.jit
def select_chunk(
    value: tl.tensor,
    chunk: tl.tensor,
    columns: tl.tensor,
    k_chunk: tl.tensor,
    channels: tl.tensor,
    values: tl.tensor,
    CHUNK: tl.constexpr,
    ASM: tl.constexpr,
) -> None:
    """List the channels of chunk number `chunk` as `reference.select_channels` does; `value` is its [CHUNK].

    Magnitudes are compared by their bits, so a value that is not a number does no harm. Columns past the
    last one are zeros in the last bucket; they come after the others there and are never reached.
    """
    at = tl.arange(0, CHUNK)
    k = chunk_share(tl.minimum(k_chunk, CHUNK), tl.minimum(columns - chunk * CHUNK, CHUNK))
    bits = tl.abs(value).to(tl.int32, bitcast=True)
    bucket = tl.minimum((tl.max(bits, 0) - bits) >> BUCKET_SHIFT, BUCKETS - 1)
    last = _last_whole(tl.histogram(bucket, BUCKETS), k)
    taken = last & 0xFFFF
    full = bucket < (last >> 16)
    partly = bucket == (last >> 16)
    ranks = tl.cumsum((full.to(tl.int32) << 16) | partly.to(tl.int32), 0)
    rank = (ranks & 0xFFFF) - 1
    slot = chunk * tl.minimum(k_chunk, CHUNK) + tl.where(full, (ranks >> 16) - 1, taken + rank)
    chosen = full | (partly & (rank < k - taken))
    mask = chosen.to(tl.int32)
    store_word(channels + slot, (chunk * CHUNK + at).to(tl.uint32, bitcast=True), mask, ASM)
    store_float(values + slot, value, mask, ASM)


@triton.jit
def select_program(
    selection: tl.tuple,
    x: tl.tensor,
    other: tl.tensor,
    factors: tl.tensor,
    columns: tl.tensor,
    chunk: tl.tensor,
    PROLOGUE: tl.constexpr,
    FACTORS: tl.constexpr,
    CHUNK: tl.constexpr,
    ASM: tl.constexpr,
) -> None:
    """`select_chunk` of an activation; selection = (control, channels, values, common)."""
    control, channels, values, _ = selection
    k_chunk = tl.load(control)
    at = chunk * CHUNK + tl.arange(0, CHUNK)
    value, _ = activation(x, other, factors, at, at < columns, PROLOGUE, FACTORS)
    select_chunk(value, chunk, columns, k_chunk, channels, values, CHUNK, ASM)


@triton.jit
def finish_selection(
    selection: tl.tuple, wanted: tl.tensor, refused: tl.tensor, common: tl.tensor, poison: tl.tensor
) -> None:
    """What one program says for the whole vector: k_chunk in effect, refusals, the common factor.

    `wanted` and `refused` are the control words of before, which the program has read when it began: at its
    end nothing would hide the wait.
    """
    control, _, _, common_at = selection
    finite = poison == 0.0
    tl.store(control + 1, tl.where(finite, wanted, 0))
    tl.store(control + 2, refused + tl.where(finite, 0, 1))
    tl.store(common_at, common)
