"""Speed and counts of one answer, as the Stats event tells them."""

from __future__ import annotations

import time
from collections.abc import Callable

from runtime.generation.engine import SliderReading
from runtime.pace import Pace
from runtime.protocol.events import Stats

STATS_INTERVAL_S = 0.2


class Meter:
    """Counts tokens against the clock. The first token needs the prefill alone and is no decode step."""

    def __init__(self, limit: int, clock: Callable[[], float] = time.perf_counter) -> None:
        self._limit, self._clock = limit, clock
        self._started = self._prefill_end = self._last_stats = clock()
        self._pace = Pace()
        self.prompt_tokens = self.reused_tokens = self.completion_tokens = 0

    def prefilled(self, prompt_tokens: int, reused_tokens: int) -> None:
        """The first logits are there."""
        self.prompt_tokens, self.reused_tokens = prompt_tokens, reused_tokens
        self._prefill_end = self._clock()

    def token(self) -> None:
        """One more token of the answer."""
        self.completion_tokens += 1
        self._pace.push(self._clock())

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
            decode_tokens_per_s=self._pace.mean(self.completion_tokens) if final else self._pace.recent(),
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
