"""Fitting a conversation into the context: the oldest turns go first, the system prompt stays."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from runtime.engine.memory import SMALLEST_CONTEXT
from runtime.errors import DecdecError
from runtime.protocol.commands import Message
from runtime.shortage import shortage
from runtime.text import Prompt, PromptBuilder

# Room for an answer before anything is dropped, and, once something must go, the share of the context freed:
# dropping a little every turn would compute the whole prompt anew every turn.
ANSWER_TOKENS = 256
FREED_SHARE = 4
# Fewer characters for each token of the context are cut soon; to look at a whole vocabulary takes longer.
QUICKLY_CUT = 16


@dataclass(frozen=True, slots=True)
class Fitted:
    """A prompt that fits, and how many messages had to be left out of it."""

    prompt: Prompt
    dropped: int


class ContextWindow:
    """Remembers what it dropped, so that the next turn begins at the same message and reuses the cache."""

    def __init__(self, builder: PromptBuilder, limit: int) -> None:
        self._builder, self._limit = builder, limit
        self._gone: tuple[Message, ...] = ()

    def fit(self, messages: Sequence[Message], max_tokens: int | None = None) -> Fitted:
        """Raises DecdecError when even the last question alone is too long."""
        if not messages:
            raise DecdecError("There is nothing to answer", "the conversation has no message")
        head, turns = _split(messages)
        dropped = len(self._gone) if tuple(turns[: len(self._gone)]) == self._gone else 0
        dropped = max(dropped, self._hopeless(head, turns))
        prompt = self._builder.build([*head, *turns[dropped:]])
        answer = min(max_tokens or ANSWER_TOKENS, ANSWER_TOKENS, self._limit // FREED_SHARE)
        if len(prompt.ids) + answer > self._limit:
            wanted = self._limit - answer - self._limit // FREED_SHARE
            prompt, dropped = self._shorten(head, turns, dropped, prompt, wanted)
        self._gone = tuple(turns[:dropped])
        return Fitted(prompt, dropped)

    def _hopeless(self, head: list[Message], turns: list[Message]) -> int:
        """How many cannot stay whatever they are cut into: to cut megabytes takes seconds."""
        if sum(len(message.content) for message in (*head, *turns)) <= self._limit * QUICKLY_CUT:
            return 0
        least = [self._builder.least_tokens(message.content) for message in turns]
        behind = [*itertools.accumulate(reversed(least))][::-1]
        above = sum(self._builder.least_tokens(message.content) for message in head)
        if above + sum(least) <= self._limit:
            return 0
        starts = _questions(turns, 0) or [0]
        if (wanted := above + sum(least[starts[-1] :])) > self._limit:
            raise _too_long(f"at least {math.ceil(wanted)}", self._limit)
        return next(start for start in starts if above + behind[start] <= self._limit)

    def _shorten(
        self, head: list[Message], turns: list[Message], dropped: int, prompt: Prompt, wanted: int
    ) -> tuple[Prompt, int]:
        """Begin at the earliest later question from which `wanted` tokens are enough, else at the last one.

        From the end, by twice as many questions each time, then by halves: what is rendered is never much
        longer than the context, however long the conversation is.
        """
        starts = _questions(turns, dropped)
        fits, step = len(starts), 1
        low = 0
        while low < fits:
            at = max(fits - step, low) if step else (low + fits) // 2
            tried = self._builder.build([*head, *turns[starts[at] :]])
            if len(tried.ids) <= wanted or at == len(starts) - 1:
                prompt, dropped, fits, step = tried, starts[at], at, step * 2
            else:
                low, step = at + 1, 0
        if len(prompt.ids) >= self._limit:
            raise _too_long(str(len(prompt.ids)), self._limit)
        return prompt, dropped


def exhausted(error: BaseException, limit: int) -> DecdecError:
    """The failure of an answer for which memory ran out: offers half of the present context."""
    if limit <= SMALLEST_CONTEXT:
        fix = "close other programs, or take a smaller model or a base with fewer bits"
    else:
        context = max(limit // 2, SMALLEST_CONTEXT)
        fix = f"close other programs, or load with a context of {context} tokens (--context {context})"
    why = f"{shortage(error)}, with a context of {limit} tokens"
    return DecdecError("Memory ran out in this answer", why, fix)


def _split(messages: Sequence[Message]) -> tuple[list[Message], list[Message]]:
    count = 1 if messages[0].role == "system" else 0
    return list(messages[:count]), list(messages[count:])


def _questions(turns: list[Message], after: int) -> list[int]:
    return [at for at, message in enumerate(turns) if message.role == "user" and at > after]


def _too_long(tokens: str, limit: int) -> DecdecError:
    return DecdecError(
        "The question does not fit",
        f"with the system prompt it has {tokens} tokens and the context holds {limit}",
        "shorten it, or load the model with a larger context (--context N)",
    )
