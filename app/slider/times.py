"""What a token took lately, and what the last move of the slider made of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import median

from app.slider.position import Position
from runtime.protocol.events import Stats

CAPACITY = 400
# Events wait for a drawing to end: over a shorter time that would look like slow and quick tokens.
MIN_S = 0.3
# So many samples make a figure that one hiccup does not bend.
MIN_SAMPLES = 3
# A figure is of the last samples of a position: a token of a longer context takes longer.
LATELY = 40


class Progress:
    """Tells reports of new tokens from those that only answer a move of the slider."""

    def __init__(self) -> None:
        self._answer: Hashable = None
        self._count = 0

    def push(self, stats: Stats) -> tuple[int, bool]:
        """How many tokens were written since the last report, and whether they are a new answer's first."""
        answer, count = (stats.prompt_tokens, stats.prefill_s), stats.completion_tokens
        first = answer != self._answer or count < self._count
        new = count - (0 if first else self._count)
        self._answer, self._count = answer, count
        return new, first and new > 0


@dataclass(frozen=True, slots=True)
class Sample:
    """Milliseconds a token at one position. `first`: nothing of this answer was timed before."""

    ms: float
    position: Position
    first: bool = False


class TokenTimes:
    """A bounded history of samples, each over at least MIN_S seconds at one position."""

    def __init__(self) -> None:
        self._samples: deque[Sample] = deque(maxlen=CAPACITY)
        self._from: tuple[int, float, Position] | None = None
        self._first = False

    @property
    def samples(self) -> Sequence[Sample]:
        """Oldest first."""
        return self._samples

    def push(self, count: int, position: Position, at: float, first: bool) -> None:
        """An answer has `count` tokens `at` a time in seconds; `first`: it has just begun.

        A span in which the slider moved belongs to neither position, and is left out.
        """
        if first or self._from is None or self._from[2] != position:
            self._from = (count, at, position)
            self._first |= first
            return
        tokens, span = count - self._from[0], at - self._from[1]
        if tokens > 0 and span >= MIN_S:
            self._samples.append(Sample(1000 * span / tokens, position, self._first))
            self._from, self._first = (count, at, position), False

    def clear(self) -> None:
        """Another model."""
        self._samples.clear()
        self._from, self._first = None, False

    @property
    def now_ms(self) -> float | None:
        """What a token of the newest answer takes at its last position; None until timed often enough."""
        runs = self._runs()
        return _figure(runs[-1]) if runs else None

    @property
    def before(self) -> tuple[Position, float] | None:
        """The position before the last move in the newest answer, and what a token took there.

        One only passed does not count.
        """
        runs = self._runs()
        for run in reversed(runs[:-1]):
            ms = _figure(run)
            if ms is not None and run[0].position != runs[-1][0].position:
                return run[0].position, ms
        return None

    def _runs(self) -> list[list[Sample]]:
        """The newest answer's samples by position; an answer that just began has none."""
        if self._first:
            return []
        newest: list[Sample] = []
        for sample in reversed(self._samples):
            newest.append(sample)
            if sample.first:
                break
        return [list(run) for _, run in groupby(reversed(newest), key=lambda sample: sample.position)]


def _figure(run: Sequence[Sample]) -> float | None:
    return median(sample.ms for sample in run[-LATELY:]) if len(run) >= MIN_SAMPLES else None
