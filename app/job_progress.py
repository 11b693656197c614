"""How far a long job is: its steps with their newest figures, and all of it as one share."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from runtime.protocol.events import Progress

# What a job's steps take of it, in seconds for the default model on two cores. Steps that a run can do
# without count as done when a later one begins.
PREPARING = MappingProxyType(
    {"download": 20.0, "extract": 1.0, "sensitivity": 58.0, "encode": 8.0, "quantise": 55.0, "hash": 1.0}
)
TUNING = MappingProxyType({"load": 1.0, "measure": 8.0, "wait": 1.0, "tune": 22.0, "check": 15.0})
# Steps that go over all blocks twice, there and back.
TWICE = frozenset({"sensitivity"})
# Steps whose pace says nothing of those that follow.
OTHER_PACE = frozenset({"download", "extract", "verify", "load", "measure", "wait"})
# Below this share moved nothing can be said about the time that is left.
MIN_MOVED = 0.02


@dataclass(slots=True)
class JobProgress:
    """The steps of one job as they become known. `plan`: expected ones in order, with their weights."""

    plan: Mapping[str, float] = field(default_factory=dict)
    clock: Callable[[], float] = time.monotonic
    steps: dict[str, Progress] = field(default_factory=dict)
    _began: tuple[float, float] | None = None

    def push(self, event: Progress) -> None:
        """Take newer figures of a step; a step seen for the first time is the last in order."""
        self.steps[event.step] = event
        if event.step in OTHER_PACE:
            self._began = None
        elif self._began is None:
            self._began = self.clock(), self.share

    def is_finished(self, step: str) -> bool:
        """A step is over when it is complete or a later one has begun."""
        event = self.steps[step]
        return step != self.current or bool(event.total and event.done >= event.total)

    @property
    def current(self) -> str:
        """The step that was reported last in order; empty before any."""
        return next(reversed(self.steps), "")

    @property
    def later(self) -> list[str]:
        """Planned steps that are still to come, in order."""
        planned = list(self.plan)
        reached = [planned.index(step) for step in self.steps if step in self.plan]
        return planned[max(reached, default=-1) + 1 :]

    @property
    def share(self) -> float:
        """Of the whole job, 0 to 1; 0 without a plan."""
        total = sum(self.plan.values())
        left = sum(self.plan[step] for step in self.later)
        return (total - left - self._open()) / total if total else 0.0

    @property
    def left_s(self) -> float | None:
        """Seconds that the rest will take, if it goes on as it went; None while that cannot be said."""
        if self._began is None:
            return None
        since, share_then = self._began
        moved = self.share - share_then
        return (self.clock() - since) * (1 - self.share) / moved if moved >= MIN_MOVED else None

    def _open(self) -> float:
        """Weight of what is not done of the step that runs."""
        step = next((s for s in reversed(self.steps) if s in self.plan), "")
        if not step or self.is_finished(step):
            return 0.0
        event = self.steps[step]
        return self.plan[step] * (1 - event.done / event.total if event.total else 1.0)
