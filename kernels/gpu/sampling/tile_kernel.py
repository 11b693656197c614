"""A tile of the vocabulary condensed: its best token, its weight, and a draw or a list of its likeliest.

Tiles take turns with runs of 8 ids, so that the likeliest tokens, which have neighbouring ids, spread over
all tiles and each lists few.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from kernels.gpu.chaining import follow
from kernels.gpu.sampling import state
from kernels.gpu.sampling.primitives import (
    LEAST,
    NO_TOKEN,
    exponential,
    key_of,
    load_filters,
    load_float,
    score_of,
    weight_of,
)

# Rows of the summary, int32 [SUMMARY_ROWS, tiles]; MASS and RATIO are float32 by their bits.
BEST_KEY, BEST_ID, MASS, RATIO, DRAWN, UNLISTED, LISTED = (tl.constexpr(row) for row in range(7))
SUMMARY_ROWS = 7
_RUN = tl.constexpr(8)
_PENALTY = tl.constexpr(state.PENALTY)
# The list's end is looked for so far below the best score, by so many halvings.
_REACH = tl.constexpr(64.0)
_HALVINGS = tl.constexpr(16)


@triton.jit
def _ids_of(tile: tl.tensor, tiles: tl.tensor, TILE: tl.constexpr) -> Any:
    at = tl.arange(0, TILE)
    return (at // _RUN) * (_RUN * tiles) + tile * _RUN + at % _RUN


@triton.jit
def _penalised(
    scores: tl.tensor, seen: tl.tensor, ids: tl.tensor, inside: tl.tensor, penalty: tl.tensor
) -> Any:
    """Scores of seen tokens made less likely. The division is exact: equal scores must stay equal."""
    marked = tl.load(seen + ids, mask=inside, other=0) != 0
    by = tl.where(marked, penalty, 1.0)
    return tl.where(scores < 0, scores * by, tl.div_rn(scores, by))


@triton.jit
def _reach(scores: tl.tensor, best: tl.tensor, MOST: tl.constexpr) -> Any:
    """How far below `best` a list reaches: no more than MOST tokens, and nearly as many where it can."""
    total = tl.sum((scores > float("-inf")).to(tl.int32), 0)
    near = tl.where(total <= MOST, float("inf"), 0.0)
    far = _REACH
    count = tl.where(total <= MOST, MOST, 0)
    halvings = 0
    while (count < MOST - MOST // 4) & (halvings < _HALVINGS):
        middle = 0.5 * (near + far)
        found = tl.sum((scores > best - middle).to(tl.int32), 0)
        fits = found <= MOST
        near = tl.where(fits, middle, near)
        far = tl.where(fits, far, middle)
        count = tl.where(fits, found, count)
        halvings += 1
    return near


@triton.jit
def _list(
    scores: tl.tensor,
    keys: tl.tensor,
    ids: tl.tensor,
    best: tl.tensor,
    lists: tl.tensor,
    MOST: tl.constexpr,
) -> Any:
    """Write the likeliest tokens, by ascending id, to `lists` int32 [2, tiles * MOST] as keys and ids.

    How many there are, and the largest key that is not among them.
    """
    first = tl.program_id(0) * MOST
    listed = scores > best - _reach(scores, best, MOST)
    slots = first + tl.cumsum(listed.to(tl.int32), 0) - 1
    tl.store(lists + slots, keys, mask=listed)
    tl.store(lists + tl.num_programs(0) * MOST + slots, ids, mask=listed)
    return tl.sum(listed.to(tl.int32), 0), tl.max(tl.where(listed, LEAST, keys), 0)


@triton.jit
def tile_kernel(
    logits: tl.tensor,
    seen: tl.tensor,
    settings: tl.tensor,
    position: tl.tensor,
    keys_out: tl.tensor,
    lists: tl.tensor,
    summary: tl.tensor,
    vocab: tl.tensor,
    TILE: tl.constexpr,
    MOST: tl.constexpr,
    CHAINED: tl.constexpr,
    ASM: tl.constexpr,
) -> None:
    """One program a tile; see `choose.choose_token`."""
    follow(CHAINED)
    tiles = tl.num_programs(0)
    ids = _ids_of(tl.program_id(0), tiles, TILE)
    inside = ids < vocab
    scores = tl.load(logits + ids, mask=inside, other=float("-inf"))
    inverse, _, _, _, filtered = load_filters(settings)
    penalty = load_float(settings, _PENALTY)
    if penalty != 1.0:
        scores = _penalised(scores, seen, ids, inside, penalty)
    keys = key_of(scores)
    best = tl.max(keys, 0)
    into = summary + tl.program_id(0)
    tl.store(into + BEST_KEY * tiles, best)
    tl.store(into + BEST_ID * tiles, tl.min(tl.where(keys == best, ids, NO_TOKEN), 0))
    if inverse > 0:
        # What is not a number has no weight and makes the sum none: then the choice is greedy.
        weights = tl.where(scores == scores, weight_of(keys, tl.maximum(best, LEAST + 1), inverse), scores)
        tl.store(into + MASS * tiles, tl.sum(weights, 0).to(tl.int32, bitcast=True))
        if filtered:
            tl.store(keys_out + ids, keys, mask=inside)
            count, unlisted = _list(scores, keys, ids, score_of(best), lists, MOST)
            tl.store(into + LISTED * tiles, count)
            tl.store(into + UNLISTED * tiles, unlisted)
        else:
            ratios = weights / exponential(settings, tl.load(position), ids)
            ratio = tl.max(ratios, 0)
            tl.store(into + RATIO * tiles, ratio.to(tl.int32, bitcast=True))
            tl.store(into + DRAWN * tiles, tl.min(tl.where(ratios == ratio, ids, NO_TOKEN), 0))
