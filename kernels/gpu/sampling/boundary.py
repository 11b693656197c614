"""Which tokens top-k and top-p keep: all above a key, and the first few, by id, of those that have it.

A pool is what is searched. With WHOLE it is the vocabulary in memory: (keys pointer, vocab, top, inverse);
else lists in registers: (keys, vocab, ids, weights). Both are read through `read`, in one or several blocks.
"""

# A return under a constexpr `if` needs its `else`: triton would compile what follows it as well.
# ruff: noqa: RET505

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from kernels.gpu.sampling.primitives import LEAST, weight_of

_ALL = tl.constexpr(1 << 30)


@triton.jit
def read(pool: tl.tuple, start: tl.tensor, BLOCK: tl.constexpr, WHOLE: tl.constexpr) -> Any:
    """Keys, ids and weights [BLOCK] of the block from `start` on; LEAST where there is no token."""
    if WHOLE:
        keys, vocab, top, inverse = pool
        ids = start + tl.arange(0, BLOCK)
        found = tl.load(keys + ids, mask=ids < vocab, other=LEAST)
        return found, ids, weight_of(found, top, inverse)
    else:
        return pool[0], pool[2], pool[3]


@triton.jit
def _above(pool: tl.tuple, key: tl.tensor, BLOCK: tl.constexpr, WHOLE: tl.constexpr) -> Any:
    """How many tokens have larger keys, as float32, and their weight.

    Summed as pairs: the reduction's latency, which is all that a search costs, is paid once.
    """
    counts = tl.zeros([BLOCK], tl.float32)
    masses = tl.zeros([BLOCK], tl.float32)
    for start in range(0, pool[1] if WHOLE else BLOCK, BLOCK):
        keys, _, weights = read(pool, start, BLOCK, WHOLE)
        counts += tl.where(keys > key, 1.0, 0.0)
        masses += tl.where(keys > key, weights, 0.0)
    return tl.split(tl.sum(tl.join(counts, masses), 0))


@triton.jit
def _largest_within(pool: tl.tuple, key: tl.tensor, BLOCK: tl.constexpr, WHOLE: tl.constexpr) -> Any:
    """The largest key up to `key`."""
    largest = tl.full([BLOCK], LEAST, tl.int32)
    for start in range(0, pool[1] if WHOLE else BLOCK, BLOCK):
        keys, _, _ = read(pool, start, BLOCK, WHOLE)
        largest = tl.maximum(largest, tl.where(keys <= key, keys, LEAST))
    return tl.max(largest, 0)


@triton.jit
def _search(
    pool: tl.tuple,
    limit: tl.tensor,
    low: tl.tensor,
    high: tl.tensor,
    BY_MASS: tl.constexpr,
    BLOCK: tl.constexpr,
    WHOLE: tl.constexpr,
) -> Any:
    """The smallest key from `low` to `high` above which count or mass are less than `limit`, and both there.

    Nothing lies above `high`. Halves the range of bits until a single token is left in it.
    """
    count, mass = 0.0, 0.0
    within = limit * 0.0 + _ALL
    while (low < high) & (within - count > 1.0):
        middle = (low & high) + ((low ^ high) >> 1)
        more, heavier = _above(pool, middle, BLOCK, WHOLE)
        enough = (heavier if BY_MASS else more) < limit
        within = tl.where(enough, within, more)
        low = tl.where(enough, low, middle + 1)
        high = tl.where(enough, middle, high)
        count = tl.where(enough, more, count)
        mass = tl.where(enough, heavier, mass)
    if low < high:
        high = tl.maximum(low, _largest_within(pool, high, BLOCK, WHOLE))
    return high, count, mass


@triton.jit
def boundary(
    pool: tl.tuple,
    filters: tl.tuple,
    floor: tl.tensor,
    total: tl.tensor,
    BLOCK: tl.constexpr,
    WHOLE: tl.constexpr,
) -> Any:
    """The key at which top-k and top-p end, how many tokens that have it they keep, and whether that is true.

    filters = (top, inverse temperature, top_p, min_p, top_k). Below `floor` the pool may lack tokens: a
    boundary there is true only if min_p keeps nothing from there on. total: the vocabulary's weight.
    """
    top, inverse, top_p, min_p, top_k = filters
    key, room, mass = floor, 0.0 * total + _ALL, total
    complete = floor == LEAST
    true = top_k <= 0
    if top_k > 0:
        key, count, mass = _search(pool, top_k.to(tl.float32), floor, top, False, BLOCK, WHOLE)
        room = top_k - count
        mass += room * weight_of(key, top, inverse)
        true = complete | (key > floor)
    if top_p < 1.0:
        limit = top_p * mass
        last, _, before = _search(pool, limit, key, top, True, BLOCK, WHOLE)
        fitting = tl.ceil((limit - before) / weight_of(last, top, inverse))
        room = tl.where(last == key, tl.minimum(room, fitting), fitting)
        key = last
    covered = (top_k <= 0) & (weight_of(floor, top, inverse) < min_p)
    true = true & (complete | covered | (key > floor))
    return key, tl.minimum(tl.maximum(room, 1.0), _ALL).to(tl.int32), true


@triton.jit
def _tied(pool: tl.tuple, key: tl.tensor, last: tl.tensor, BLOCK: tl.constexpr, WHOLE: tl.constexpr) -> Any:
    """How many tokens up to the id `last` have exactly this key."""
    counts = tl.zeros([BLOCK], tl.int32)
    for start in range(0, pool[1] if WHOLE else BLOCK, BLOCK):
        keys, ids, _ = read(pool, start, BLOCK, WHOLE)
        counts += ((keys == key) & (ids <= last)).to(tl.int32)
    return tl.sum(counts, 0)


@triton.jit
def last_tied(
    pool: tl.tuple, key: tl.tensor, room: tl.tensor, BLOCK: tl.constexpr, WHOLE: tl.constexpr
) -> Any:
    """The id up to which tokens with this key are kept, so that there are `room` of them."""
    low, high = 0 * room, pool[1] - 1
    if _tied(pool, key, high, BLOCK, WHOLE) > room:
        while low < high:
            middle = (low & high) + ((low ^ high) >> 1)
            enough = _tied(pool, key, middle, BLOCK, WHOLE) >= room
            high = tl.where(enough, middle, high)
            low = tl.where(enough, low, middle + 1)
    return high
