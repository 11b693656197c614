"""Steps captured as CUDA graphs, one for each set of kinds that are corrected."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch

from runtime.engine.gpu.step import Corrected, DecodeStep

Replay = Callable[[], object]


class StepGraphs:
    """The ways to run a step; each is captured when it is first wanted, and kept.

    A kind that is not corrected has no selection and no fetch in the graph: being ready costs time.
    Without a GPU the step's kernels are called one by one.
    """

    def __init__(self, step: DecodeStep) -> None:
        self.step = step
        self._replays: dict[frozenset[str], Replay] = {}

    def replay(self, corrected: Corrected) -> Replay:
        """What runs one step; neither the state nor the answer changes by capturing it."""
        key = frozenset(corrected)
        if key not in self._replays:
            self._replays[key] = self._capture(corrected)
        return self._replays[key]

    def _capture(self, corrected: Corrected) -> Replay:
        run = partial(self.step.run, corrected)
        if self.step.buffers.stream.device.type != "cuda":
            return run
        with self.step.buffers.state.kept():
            self.step.buffers.state.stay_inside()
            # Compiles what was never run; a capture must not.
            run()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            run()
        return graph.replay
