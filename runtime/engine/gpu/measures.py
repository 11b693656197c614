"""What a GPU engine takes: time of a step, kernels in it, memory."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import torch

from runtime.engine.gpu.graphs import Replay
from runtime.engine.gpu.step import StepBuffers
from runtime.engine.gpu.timing import Stopwatch

_WARM = 3


def step_milliseconds(replay: Replay, buffers: StepBuffers, position: int, replays: int) -> float:
    """Median device time of a step at a place in the context; the state stays as it is."""
    watch = Stopwatch(buffers.stream.device)
    with buffers.state.kept():
        marks = [_timed(replay, buffers, position, watch) for _ in range(_WARM + replays)][_WARM:]
    watch.wait(marks[-1][1])
    return 1e3 * statistics.median(watch.seconds(*pair) for pair in marks)


def _timed(replay: Replay, buffers: StepBuffers, position: int, watch: Stopwatch) -> tuple[Any, Any]:
    buffers.state.place(position, 0)
    start = watch.mark()
    replay()
    return start, watch.mark()


def kernels_of(run: Callable[[], object], buffers: StepBuffers) -> int:
    """Kernels of a step by `run`; the state stays as it is."""
    with buffers.state.kept():
        buffers.state.stay_inside()
        return kernels_started(run)


def kernels_started(run: Callable[[], object]) -> int:
    """Kernels that a call starts on the GPU, 0 without one; torch's profiler may slow what runs later."""
    if not torch.cuda.is_available():
        return 0
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        run()
        torch.cuda.synchronize()
    found = [event for event in profile.events() if event.device_type == torch.autograd.DeviceType.CUDA]
    return sum(not event.name.startswith(("Memcpy", "Memset")) for event in found)
