"""Speed and counts of one answer, as the Stats event tells them."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from runtime.generation.engine import SliderReading
from runtime.protocol.events import Stats

STATS_INTERVAL_S = 0.2
# Long enough to be calm, short enough that a move of the slider shows.
WINDOW_S = 1.5


class Meter:
    """Counts tokens against the clock. The first token needs the prefill alone and is no decode step."""

    def __init__(self, limit: int, clock: Callable[[], float] = time.perf_counter) -> None:
        self._limit, self._clock = limit, clock
        self._started = self._prefill_end = self._last_stats = clock()
        self._times: deque[float] = deque()
        self._first_token = 0.0
        self.prompt_tokens = self.reused_tokens = self.completion_tokens = 0

    def prefilled(self, prompt_tokens: int, reused_tokens: int) -> None:
        """The first logits are there."""
        self.prompt_tokens, self.reused_tokens = prompt_tokens, reused_tokens
        self._prefill_end = self._clock()

    def token(self) -> None:
        """One more token of the answer."""
        now = self._clock()
        if not self.completion_tokens:
            self._first_token = now
        self.completion_tokens += 1
        self._times.append(now)
        while len(self._times) > 2 and now - self._times[0] > WINDOW_S:
            self._times.popleft()

    def due(self) -> bool:
        """Whether it is time for a Stats event; true at most five times a second."""
        now = self._clock()
        if now - self._last_stats < STATS_INTERVAL_S:
            return False
        self._last_stats = now
        return True

    def stats(self, used: int, slider: SliderReading, *, final: bool = False) -> Stats:
        """The event: speed over the last moments, or over the whole answer when it is the final one."""
        return Stats(
            decode_tokens_per_s=self._mean_speed() if final else self._recent_speed(),
            prefill_s=self._prefill_end - self._started,
            prompt_tokens=self.prompt_tokens,
            reused_tokens=self.reused_tokens,
            completion_tokens=self.completion_tokens,
            context_used=used,
            context_limit=self._limit,
            slowdown_target_pct=slider.target_pct,
            slowdown_measured_pct=slider.measured_pct,
            k_chunk=slider.k_chunk,
            channels_corrected=slider.channels_corrected,
            lossless=slider.lossless,
            corrections_left_out=slider.left_out,
        )

    def _recent_speed(self) -> float:
        return _per_second(len(self._times) - 1, self._times[-1] - self._times[0]) if self._times else 0.0

    def _mean_speed(self) -> float:
        if not self._times:
            return 0.0
        return _per_second(self.completion_tokens - 1, self._times[-1] - self._first_token)


def _per_second(steps: int, seconds: float) -> float:
    return steps / seconds if steps > 0 and seconds > 0 else 0.0
