"""The visible side of one answer: ids in, text out in sensible portions."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from runtime.protocol.events import Token
from runtime.text import Detokenizer, StopMatcher, Tokenizer

# A screen is redrawn at most this often, so finer portions would only cost both processes time.
FLUSH_INTERVAL_S = 0.03


class AnswerText:
    """Detokenises, watches for stop strings, and collects text until a Token event is worth sending."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        stops: Iterable[str],
        opening: str = "",
        *,
        continues: bool = False,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._detokenizer, self._stops = Detokenizer(tokenizer, continues=continues), StopMatcher(stops)
        self._opening, self._pending = opening, opening
        self._shown: list[str] = []
        self._clock, self._last = clock, -FLUSH_INTERVAL_S
        self._ids: list[int] = []
        self._whole = 0

    @property
    def stopped(self) -> bool:
        """Whether a stop string was met."""
        return self._stops.hit

    @property
    def text(self) -> str:
        """Everything shown so far."""
        return "".join(self._shown)

    @property
    def ids(self) -> list[int]:
        """Every token taken, up to the last that ended a character."""
        return self._ids[: self._whole]

    @property
    def own_text(self) -> str:
        """What the model itself wrote: without the opening that the template gave it."""
        return self.text.removeprefix(self._opening)

    def push(self, token_id: int) -> Token | None:
        """Take one token; an event when there is text and the last one is a moment ago."""
        self._ids.append(token_id)
        self._pending += self._stops.push(self._detokenizer.push(token_id))
        if self._detokenizer.whole:
            self._whole = len(self._ids)
        if self._pending and self._clock() - self._last >= FLUSH_INTERVAL_S:
            return self._flush()
        return None

    def finish(self) -> Token | None:
        """What is left, once no further token comes."""
        self._pending += self._stops.push(self._detokenizer.finish()) + self._stops.finish()
        return self._flush() if self._pending else None

    def _flush(self) -> Token:
        text, self._pending = self._pending, ""
        self._shown.append(text)
        self._last = self._clock()
        return Token(text, len(self._ids))
