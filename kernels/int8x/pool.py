"""Threads for compiled loops that hold no interpreter lock."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache


def for_each(run: Callable[[int], object], starts: range) -> None:
    """Call `run` with every number, in parallel where there are several; raises what a call raised."""
    for _ in map(run, starts) if len(starts) == 1 else _pool().map(run, starts):
        pass


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=os.cpu_count() or 1, thread_name_prefix="int8x")
