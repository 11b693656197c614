"""Timing of short GPU kernels: captured graphs over rotated copies, so that neither launches nor caches
count.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

import torch

# More than any L2 cache holds: the copies of one operand together.
COLD_BYTES = 190_000_000
_REPLAYS = 21
_WARM_REPLAYS = 3


def copies_needed(nbytes: int) -> int:
    """How many copies of an operand of `nbytes` keep every call from finding it in the cache; 4 or more."""
    return max(4, -(-COLD_BYTES // nbytes))


def graph_microseconds(calls: Sequence[Callable[[], object]]) -> float:
    """Median time of one call, in microseconds, over replays of one graph of all `calls`."""
    for call in calls:
        call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for call in calls:
            call()
    for _ in range(_WARM_REPLAYS):
        graph.replay()
    return 1000 * statistics.median(_replay(graph) for _ in range(_REPLAYS)) / len(calls)


def _replay(graph: torch.cuda.CUDAGraph) -> float:
    """Milliseconds of one replay."""
    start = torch.cuda.Event(enable_timing=True)
    end = torch.cuda.Event(enable_timing=True)
    start.record()
    graph.replay()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end)
