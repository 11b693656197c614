"""Short GPU work timed by replays of captured graphs, against a reference that is replayed in between."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

import torch

# An idle GPU reads a tenth too slow at first.
_WARM_SIZE, _WARM_PRODUCTS = 8192, 40


def warm_up() -> None:
    """Bring the current GPU's clocks up."""
    x = torch.randn(_WARM_SIZE, _WARM_SIZE, device="cuda").bfloat16()
    for _ in range(_WARM_PRODUCTS):
        x @ x
    torch.cuda.synchronize()


class Replay:
    """A graph of some calls; times are microseconds of all of them, once."""

    def __init__(self, calls: Sequence[Callable[[], object]]) -> None:
        for call in calls:
            call()
        torch.cuda.synchronize()
        # The graph reads and writes their tensors, which nothing else need hold.
        self._calls = tuple(calls)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            for call in calls:
                call()

    def run(self) -> None:
        """Replay once, without waiting."""
        self._graph.replay()

    def microseconds(self, replays: int = 15) -> float:
        """Median of some replays."""
        self.run()
        return statistics.median(_elapsed([self._timed() for _ in range(replays)]))

    def added_to(self, reference: Replay, replays: int = 11) -> tuple[float, float]:
        """Microseconds above those of `reference`, and its own; medians of pairs replayed in turn."""
        reference.run()
        self.run()
        pairs = [(reference._timed(), self._timed()) for _ in range(replays)]
        base, mine = (_elapsed(part) for part in zip(*pairs, strict=True))
        return statistics.median(b - a for a, b in zip(base, mine, strict=True)), statistics.median(base)

    def _timed(self) -> tuple[torch.cuda.Event, torch.cuda.Event]:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        self._graph.replay()
        end.record()
        return start, end


def _elapsed(events: Sequence[tuple[torch.cuda.Event, torch.cuda.Event]]) -> list[float]:
    torch.cuda.synchronize()
    return [1000 * start.elapsed_time(end) for start, end in events]
