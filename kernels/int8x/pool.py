"""Threads for compiled loops that hold no interpreter lock."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache

# Work of one call of a compiled loop: enough to outweigh the call, small enough to share among threads.
TILE_WEIGHTS = 1 << 18


def for_each(run: Callable[[int], object], starts: range) -> None:
    """Call `run` with every number, in parallel where there are several; raises what a call raised."""
    for _ in map(run, starts) if len(starts) == 1 else _pool().map(run, starts):
        pass


def for_tiles(count: int, weights: int, run: Callable[[int, int], object]) -> None:
    """run(first, end) over `count` things of so many weights each, several at a time, in parallel."""
    tile = max(1, TILE_WEIGHTS // weights)
    for_each(lambda first: run(first, min(first + tile, count)), range(0, count, tile))


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=os.cpu_count() or 1, thread_name_prefix="int8x")
