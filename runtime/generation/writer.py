"""Writing one answer: prefill, then a token a step until something ends it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Protocol

from runtime.errors import Interrupted
from runtime.generation.answer import AnswerText
from runtime.generation.cache import PrefixCache
from runtime.generation.engine import Continuation
from runtime.generation.meter import Meter
from runtime.generation.settings import SamplingSettings
from runtime.protocol.commands import SetSlowdown
from runtime.protocol.events import Event, Failed, FinishReason, Stats


class Control(Protocol):
    """What may happen while an answer is written; asked between two tokens."""

    def stopped(self) -> bool:
        """Whether the user ended this answer."""
        ...

    def slowdown(self) -> SetSlowdown | None:
        """The slider's newest position, once; None when it did not move."""
        ...


@dataclass(frozen=True, slots=True)
class Writer:
    """Everything one answer needs; `move` applies a slider position, `stats` reads the figures."""

    cache: PrefixCache
    sampling: SamplingSettings
    text: AnswerText
    meter: Meter
    control: Control
    ends: Collection[int]
    max_tokens: int | None
    move: Callable[[SetSlowdown], Failed | None]
    stats: Callable[[], Stats]

    def write(self, prompt: tuple[int, ...]) -> Generator[Event, None, FinishReason]:
        """Events of the answer to a prompt (at least one token); returns why it ended."""
        try:
            logits, reused = self.cache.prefill(prompt, self._check)
        except Interrupted:
            self.meter.prefilled(len(prompt), 0)
            return "stopped"
        self.meter.prefilled(len(prompt), reused)
        with closing(self.cache.continuation(logits, self.sampling)) as tokens:
            return (yield from self._tokens(tokens))

    def _tokens(self, tokens: Continuation) -> Generator[Event, None, FinishReason]:
        while not (reason := self._over()):
            yield from self._moved()
            token = tokens.next()
            # A stop that came meanwhile counts, and in a full context the token has no place.
            if reason := self._over():
                break
            if token in self.ends:
                return "stop"
            yield from self._show(token)
        return reason

    def _check(self) -> None:
        if self.control.stopped():
            raise Interrupted

    def _moved(self) -> Iterator[Event]:
        if (move := self.control.slowdown()) and (failed := self.move(move)):
            yield failed

    def _show(self, token: int) -> Iterator[Event]:
        self.meter.token()
        if event := self.text.push(token):
            yield event
        if self.meter.due():
            yield self.stats()

    def _over(self) -> FinishReason | None:
        if self.text.stopped:
            return "stop"
        if self.control.stopped():
            return "stopped"
        if self.max_tokens is not None and self.meter.completion_tokens >= self.max_tokens:
            return "length"
        return "context" if self.cache.full else None
