"""What corrections cost, from steps timed by the device: rarely, and always in pairs."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Any

import torch

from runtime.engine.slider import MeasuredSlowdown

# Steps after a move of the slider at which a pair is timed, and how often after them.
_FIRST = (4, 8, 16, 32)
_EVERY = 64


class Stopwatch:
    """Marks in the stream of a device's work; on a CPU, moments."""

    def __init__(self, device: torch.device) -> None:
        self._timed = device.type == "cuda"

    def mark(self) -> Any:
        """A mark behind all work given so far."""
        if not self._timed:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def passed(self, mark: Any) -> bool:
        """Whether the work before the mark is done."""
        return not self._timed or mark.query()

    def wait(self, mark: Any) -> None:
        """Wait until it is."""
        if self._timed:
            mark.synchronize()

    def seconds(self, start: Any, end: Any) -> float:
        """Between two marks that have passed."""
        return start.elapsed_time(end) / 1e3 if self._timed else end - start


class PairedSteps:
    """The slowdown by corrections: a step without them and one with them, one right after the other.

    So a clock that changes, or heat, changes both alike. A pair costs one step more, one in 64 steps.
    """

    def __init__(self, watch: Stopwatch) -> None:
        self._watch, self._steps = watch, 0
        self._measured = MeasuredSlowdown()
        self._running: deque[tuple[Any, Any, Any, Any]] = deque()

    @property
    def pct(self) -> float | None:
        """Percent of a step without corrections, median of recent pairs; None until there is one."""
        self._collect()
        return self._measured.pct

    def reset(self) -> None:
        """Forget: the table has changed."""
        self._steps = 0
        self._running.clear()
        self._measured.reset()

    def due(self) -> bool:
        """Whether the next step should be timed; to be asked once a step."""
        self._steps += 1
        return self._steps in _FIRST or self._steps % _EVERY == 0

    def run(
        self, base: Callable[[], object], between: Callable[[], object], corrected: Callable[[], object]
    ) -> None:
        """Run all three, of which `between` does not count; nothing waits."""
        marks = []
        for step in (base, between, corrected):
            marks.append(self._watch.mark())
            step()
        self._running.append((marks[0], marks[1], marks[2], self._watch.mark()))

    def _collect(self) -> None:
        while self._running and self._watch.passed(self._running[0][3]):
            start, done, again, end = self._running.popleft()
            base, step = self._watch.seconds(start, done), self._watch.seconds(again, end)
            self._measured.add(step, step - base)
