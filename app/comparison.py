"""One question answered at two positions of the slider, one after the other. Knows no screen."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import msgspec

from app.slider import Position, SliderState
from app.slider.position import LOSSLESS, MAX_SLOWDOWN_PCT
from runtime.errors import DecdecError
from runtime.protocol.commands import Command, Generate, Message, Sampling, SetSlowdown, Stop
from runtime.protocol.events import Done, Event, Failed, Stats, Token

MAX_SEED = 2**31
INTERRUPTED = 130


@dataclass(slots=True)
class Answer:
    """What was written at one position. `ended`: nothing more comes, for a reason or after a failure."""

    position: Position
    text: str = ""
    stats: Stats | None = None
    reason: str = ""
    failure: str = ""
    ended: bool = False

    @property
    def whole(self) -> bool:
        """Whether it need not be written again."""
        return self.ended and not self.failure and self.reason != "stopped"


@dataclass(frozen=True, slots=True)
class Context:
    """What both answers share: the conversation before the question, and how tokens are chosen.

    `last`: a question that is asked again in its own place, with what was said before it; empty: none is.
    """

    messages: tuple[Message, ...] = ()
    sampling: Sampling = field(default_factory=Sampling)
    max_tokens: int | None = None
    last: str = ""
    before_last: tuple[Message, ...] = ()


def usual_positions(slider: SliderState) -> tuple[Position, Position]:
    """0 % against the target; where that is 0 % too, against the best there is."""
    if slider.position != Position():
        return Position(), slider.position
    return Position(), LOSSLESS if slider.has_lossless else Position(MAX_SLOWDOWN_PCT)


class Comparison:
    """Takes intents and the engine's events, gives the commands to send, in order.

    The slider moves only between two answers. `home` is asked for its position when all is over, also after
    a stop and a failure. Both answers have the same seed: the given one, or one that is chosen here.
    """

    def __init__(
        self, context: Context, positions: tuple[Position, Position], home: Callable[[], SetSlowdown]
    ) -> None:
        self.sides = list(positions)
        self.question = ""
        self.answers: dict[Position, Answer] = {}
        self.running: Answer | None = None
        self.stopping = False
        self._home = home
        sampling = context.sampling
        if sampling.seed is None:
            sampling = msgspec.structs.replace(sampling, seed=secrets.randbelow(MAX_SEED))
        self._context = replace(context, sampling=sampling)

    # Intents

    def begin(self, question: str) -> list[Command]:
        """Answer a question at both positions; an answer that is there already is not written again.

        Raises DecdecError when there is nothing to compare.
        """
        if self.running:
            raise DecdecError("The answers are still being written", "", "Esc stops them")
        if not question.strip():
            raise DecdecError("There is no question", "", "type one, Enter compares its answers")
        if self.sides[0] == self.sides[1]:
            raise DecdecError("Both stand at the same position", "", "move one of them")
        if question != self.question:
            self.question, self.answers = question, {}
        return self._next()

    def move(self, side: int, position: Position) -> bool:
        """Compare at another position; whether that was possible. Answers of other positions are kept."""
        if self.running or position == self.sides[side]:
            return False
        self.sides[side] = position
        return True

    def stop(self) -> list[Command]:
        """End what is being written."""
        if not self.running or self.stopping:
            return []
        self.stopping = True
        return [Stop()]

    # Events

    def push(self, event: Event) -> list[Command]:
        """Apply one event of the engine; gives what to send next."""
        answer = self.running
        if answer is None:
            return []
        match event:
            case Token():
                answer.text += event.text
            case Stats() if answer.text:
                # Before the first token they are the slider's, about the answer before.
                answer.stats = event
            case Done(job="generate"):
                return self._done(answer, event)
            case Failed(job="generate" | "load" | "worker"):
                return self._failed(answer, event)
            case Failed(job="set_slowdown"):
                # What follows would be written at another position than it is said to be.
                answer.failure = _sentence(event)
                return self.stop()
        return []

    def _done(self, answer: Answer, event: Done) -> list[Command]:
        answer.text = event.result.get("text", answer.text)
        answer.reason = event.result.get("finish_reason", "stop")
        answer.ended = True
        if self.stopping or answer.failure:
            return self._over()
        return self._next() or self._over()

    def _failed(self, answer: Answer, event: Failed) -> list[Command]:
        answer.ended = True
        if self.stopping and event.code == INTERRUPTED:
            answer.reason = "stopped"
        else:
            answer.failure = answer.failure or _sentence(event)
        home = self._over()
        # An engine that is gone gets the slider's position when it is back.
        return home if event.job == "generate" else []

    def _next(self) -> list[Command]:
        """Begin the first answer that is missing."""
        for position in self.sides:
            known = self.answers.get(position)
            if known is None or not known.whole:
                self.running = self.answers[position] = Answer(position)
                told = self._context.before_last if self.variant else self._context.messages
                messages = (*told, Message("user", self.question))
                return [
                    SetSlowdown(position.pct, position.lossless),
                    Generate(messages, self._context.sampling, self._context.max_tokens),
                ]
        return []

    def _over(self) -> list[Command]:
        self.running, self.stopping = None, False
        return [self._home()]

    # What is shown

    @property
    def variant(self) -> bool:
        """Whether the question is the last one again; else it is a new one."""
        return bool(self._context.last) and self.question == self._context.last

    def answer(self, side: int) -> Answer | None:
        """What was written at a side's position so far."""
        return self.answers.get(self.sides[side])

    def can_keep(self, side: int) -> bool:
        """Whether a side has an answer that is over."""
        answer = self.answer(side)
        return answer is not None and answer.ended and bool(answer.text)

    @property
    def keepable(self) -> list[int]:
        """The sides that have an answer that is over."""
        return [side for side in (0, 1) if self.can_keep(side)]

    @property
    def stopped(self) -> bool:
        """Whether a side's answer was stopped, so that it can be written again."""
        return any(answer and answer.reason == "stopped" for answer in map(self.answer, (0, 1)))

    @property
    def difference(self) -> int | None:
        """Characters that both answers begin with, where they are known to differ after that."""
        a, b = self.answer(0), self.answer(1)
        return _first_difference(a, b) if a and b and a is not b and a.text and b.text else None

    @property
    def same(self) -> bool:
        """Whether both answers are there and do not differ at all."""
        a, b = self.answer(0), self.answer(1)
        return bool(a and b and a is not b and a.ended and b.ended and a.text and a.text == b.text)


def _first_difference(a: Answer, b: Answer) -> int | None:
    short, long = sorted((a, b), key=lambda answer: len(answer.text))
    for at, (x, y) in enumerate(zip(short.text, long.text, strict=False)):
        if x != y:
            return at
    return len(short.text) if short.ended and len(short.text) < len(long.text) else None


def _sentence(event: Failed) -> str:
    return DecdecError(event.what, event.why, event.fix).sentence
