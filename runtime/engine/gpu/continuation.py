"""An answer whose tokens are chosen on the device, one step ahead of what was asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from kernels.gpu.step_state import NO_ANSWER
from runtime.engine.gpu.timing import Stopwatch
from runtime.generation.engine import unusable_scores


@dataclass(frozen=True, slots=True)
class Stepping:
    """What a continuation needs of its engine: `launch` starts a step and does not wait; answers as in
    `StepState`, from position `start` on; `closed` hears how many tokens stay in the cache.
    """

    launch: Callable[[], None]
    answers: Tensor
    start: int
    context: int
    watch: Stopwatch
    closed: Callable[[int], None]


class DeviceContinuation:
    """Implements `runtime.generation.engine.Continuation`.

    The device works on the step after a token while the host shows the token: whatever is changed between
    two tokens takes effect one step later than it would without, always.
    """

    def __init__(self, stepping: Stepping) -> None:
        """The choice of the first token must have been launched."""
        self._stepping, self._open = stepping, True
        self._marks: list[Any] = [stepping.watch.mark()]
        self._given = 0

    @property
    def accepted(self) -> int:
        """Tokens of the answer that belong to the cache."""
        return max(self._given - 1, 0)

    def next(self) -> int:
        """The next token; ValueError when the one before has no place in the cache."""
        s = self._stepping
        if not self._open or (self._given and s.start + self._given > s.context):
            raise ValueError("there is no room for another token")
        while len(self._marks) <= self._given + 1 and s.start + len(self._marks) <= s.context:
            s.launch()
            self._marks.append(s.watch.mark())
        s.watch.wait(self._marks[self._given])
        self._given += 1
        if (token := int(s.answers[s.start + self._given - 1])) == NO_ANSWER:
            raise unusable_scores()
        return token

    def close(self) -> None:
        """Forget what was computed ahead."""
        if self._open:
            self._open = False
            self._stepping.closed(self._stepping.start + self.accepted)
