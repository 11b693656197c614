"""Speed and counts of an answer as this side of the connection sees them."""

from __future__ import annotations

import time
from collections.abc import Callable

from runtime.client.remote.documents import Figures, Usage
from runtime.pace import Pace
from runtime.protocol.events import Stats

STATS_INTERVAL_S = 0.25
# More than this in one piece are tokens that no text was sent for.
MAX_PER_PIECE = 16.0


class RemoteMeter:
    """Counts pieces of text until the server says how many tokens there were.

    `prompt_guess`: tokens the prompt probably has, for the context meter alone. `piece_guess`: tokens in a
    piece. `limit`: 0 for unknown.
    """

    def __init__(
        self,
        limit: int = 0,
        prompt_guess: int = 0,
        piece_guess: float = 1.0,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._limit, self._guess, self._clock = limit, prompt_guess, clock
        self._per_piece = piece_guess
        self._started = self._last_stats = clock()
        self._pace = Pace()
        self._shows_reasoning = False
        self.usage, self.figures = Usage(), Figures()

    @property
    def tokens(self) -> int:
        """Of the answer, so far."""
        return self.usage.completion_tokens or round(self._pace.count * self._per_piece)

    @property
    def full(self) -> bool:
        """Whether prompt and answer fill a context that is known."""
        known = self._limit and self.usage.prompt_tokens
        return bool(known) and self.usage.prompt_tokens + self.tokens >= self._limit

    @property
    def per_piece(self) -> float:
        """Tokens in a piece: as counted where the server did, else the guess."""
        counted = (
            self._seen_tokens / self._pace.count if self._pace.count and self.usage.completion_tokens else 0.0
        )
        return min(max(counted, 1.0), MAX_PER_PIECE) if counted else self._per_piece

    def piece(self, reasoning: bool = False) -> None:
        """Text came, of the reasoning or of the answer."""
        self._shows_reasoning |= reasoning
        self._pace.push(self._clock())

    def due(self) -> bool:
        """Whether it is time for a Stats event; true a few times a second."""
        now = self._clock()
        if now - self._last_stats < STATS_INTERVAL_S:
            return False
        self._last_stats = now
        return True

    def stats(self, *, final: bool = False) -> Stats:
        """The event: speed over the last moments, or over the whole answer when it is the final one."""
        prompt = self.usage.prompt_tokens
        used = (prompt or self._guess) + self.tokens
        waited = self._clock() if self._pace.first is None else self._pace.first
        recent = self._pace.recent(self._per_piece)
        return Stats(
            decode_tokens_per_s=self._pace.mean(self._seen_tokens) if final else recent,
            prefill_s=waited - self._started,
            prompt_tokens=prompt,
            reused_tokens=self.usage.reused_tokens,
            completion_tokens=self.tokens,
            context_used=min(used, self._limit) if self._limit else used,
            context_limit=self._limit,
            slowdown_target_pct=self.figures.slowdown_target_pct,
            slowdown_measured_pct=self.figures.slowdown_measured_pct,
            k_chunk=self.figures.k_chunk,
            channels_corrected=self.figures.channels_corrected,
        )

    @property
    def _seen_tokens(self) -> int:
        """Without reasoning that went before the first piece and was not shown."""
        hidden = 0 if self._shows_reasoning else self.usage.reasoning_tokens
        return max(self.tokens - hidden, 0)
