"""The choice from what the tiles found, and the step of the state to the next position."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from kernels.gpu.chaining import follow
from kernels.gpu.sampling.boundary import boundary, last_tied, read
from kernels.gpu.sampling.primitives import LEAST, NO_TOKEN, exponential, load_filters, weight_of
from kernels.gpu.sampling.tile_kernel import BEST_ID, BEST_KEY, DRAWN, LISTED, MASS, RATIO, UNLISTED
from kernels.gpu.step_state import NO_ANSWER

_NO_ANSWER = tl.constexpr(NO_ANSWER)


@triton.jit
def _first_best(values: tl.tensor, ids: tl.tensor) -> Any:
    """The smallest id that has the largest value."""
    return tl.min(tl.where(values == tl.max(values, 0), ids, NO_TOKEN), 0)


@triton.jit
def _draw(
    pool: tl.tuple,
    bounds: tl.tuple,
    min_p: tl.tensor,
    noise: tl.tuple,
    BLOCK: tl.constexpr,
    WHOLE: tl.constexpr,
) -> Any:
    """A token of the pool within bounds = (key, id up to which that key is kept), by its weight."""
    key, last = bounds
    best = tl.full([BLOCK], -1.0, tl.float32)
    chosen = tl.full([BLOCK], NO_TOKEN, tl.int32)
    for start in range(0, pool[1] if WHOLE else BLOCK, BLOCK):
        keys, ids, weights = read(pool, start, BLOCK, WHOLE)
        kept = ((keys > key) | ((keys == key) & (ids <= last))) & (weights >= min_p)
        ratios = tl.where(kept, weights / exponential(noise[0], noise[1], ids), -1.0)
        chosen = tl.where(ratios > best, ids, chosen)
        best = tl.maximum(ratios, best)
    return _first_best(best, chosen)


@triton.jit
def _filtered(
    pool: tl.tuple,
    filters: tl.tuple,
    floor: tl.tensor,
    total: tl.tensor,
    noise: tl.tuple,
    BLOCK: tl.constexpr,
    WHOLE: tl.constexpr,
) -> Any:
    """A token that the filters keep, and whether the pool was enough to tell."""
    key, room, true = boundary(pool, filters, floor, total, BLOCK, WHOLE)
    token = NO_TOKEN + 0 * room
    if true:
        last = last_tied(pool, key, room, BLOCK, WHOLE)
        token = _draw(pool, (key, last), filters[3], noise, BLOCK, WHOLE)
    return token, true


@triton.jit
def _listed(
    lists: tl.tensor,
    summary: tl.tensor,
    tiles: tl.tensor,
    scaling: tl.tuple,
    vocab: tl.tensor,
    TILES: tl.constexpr,
    MOST: tl.constexpr,
) -> Any:
    """The pool of all tiles' lists; scaling = (top, inverse temperature)."""
    at = tl.arange(0, TILES * MOST)
    tile = at // MOST
    count = tl.load(summary + LISTED * tiles + tile, mask=tile < tiles, other=0)
    filled = at % MOST < count
    keys = tl.load(lists + at, mask=filled, other=LEAST)
    ids = tl.load(lists + tiles * MOST + at, mask=filled, other=NO_TOKEN)
    return keys, vocab, ids, weight_of(keys, scaling[0], scaling[1])


@triton.jit(do_not_specialize=("context", "tiles"))
def draw_kernel(
    settings: tl.tensor,
    position: tl.tensor,
    token: tl.tensor,
    answers: tl.tensor,
    keys: tl.tensor,
    lists: tl.tensor,
    summary: tl.tensor,
    vocab: tl.tensor,
    context: tl.tensor,
    tiles: tl.tensor,
    TILES: tl.constexpr,
    MOST: tl.constexpr,
    BLOCK: tl.constexpr,
    CHAINED: tl.constexpr,
    ASM: tl.constexpr,
) -> None:
    """One program; see `choose.choose_token`."""
    follow(CHAINED)
    at = tl.arange(0, TILES)
    mask = at < tiles
    place = tl.load(position)
    inverse, top_p, min_p, top_k, filtered = load_filters(settings)
    best = tl.load(summary + BEST_KEY * tiles + at, mask=mask, other=LEAST)
    chosen = _first_best(best, tl.load(summary + BEST_ID * tiles + at, mask=mask, other=NO_TOKEN))
    if inverse > 0:
        top = tl.max(best, 0)
        scale = weight_of(best, top, inverse)
        mass = tl.load(summary + MASS * tiles + at, mask=mask, other=0).to(tl.float32, bitcast=True)
        total = tl.sum(mass * scale, 0)
        noise = (settings, place)
        if (total > 0.0) & (total < float("inf")):
            if filtered:
                filters = (top, inverse, top_p, min_p, top_k)
                floor = tl.max(tl.load(summary + UNLISTED * tiles + at, mask=mask, other=LEAST), 0)
                listed = _listed(lists, summary, tiles, (top, inverse), vocab, TILES, MOST)
                chosen, enough = _filtered(listed, filters, floor, total, noise, TILES * MOST, False)
                if not enough:
                    whole = (keys, vocab, top, inverse)
                    floor = LEAST + 0 * top
                    chosen, _ = _filtered(whole, filters, floor, total, noise, BLOCK, True)
            else:
                ratio = tl.load(summary + RATIO * tiles + at, mask=mask, other=0)
                drawn = tl.load(summary + DRAWN * tiles + at, mask=mask, other=NO_TOKEN)
                chosen = _first_best(ratio.to(tl.float32, bitcast=True) * scale, drawn)
    # Every warp has read the position before it changes.
    tl.debug_barrier()
    tl.store(token, chosen)
    if place < context:
        tl.store(answers + place + 1, tl.where(tl.max(best, 0) > LEAST, chosen, _NO_ANSWER))
        tl.store(position, place + 1)
