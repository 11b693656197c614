"""A conversation: what was asked, what came back, and how each answer ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from runtime.protocol.commands import Message
from runtime.protocol.events import Stats


class TurnState(Enum):
    """How far an answer is."""

    WAITING = "waiting"
    STREAMING = "streaming"
    DONE = "done"
    FAILED = "failed"


_ENDINGS = {
    "stopped": "stopped",
    "length": "length limit reached",
    "context": "context is full",
}


@dataclass(slots=True)
class Turn:
    """One question and its answer, which may be partial."""

    question: str
    answer: str = ""
    state: TurnState = TurnState.WAITING
    finish_reason: str = ""
    failure: str = ""
    stats: Stats | None = None
    dropped_messages: int = 0

    @property
    def ending(self) -> str:
        """How it ended, in words; empty for an ordinary end."""
        return self.failure or _ENDINGS.get(self.finish_reason, "")

    @property
    def open(self) -> bool:
        """Whether more text may come."""
        return self.state in (TurnState.WAITING, TurnState.STREAMING)


@dataclass(slots=True)
class Conversation:
    """Turns in order, below an optional system prompt."""

    system_prompt: str = ""
    turns: list[Turn] = field(default_factory=list)

    @property
    def last(self) -> Turn | None:
        """The newest turn."""
        return self.turns[-1] if self.turns else None

    @property
    def last_answer(self) -> str:
        """The newest answer that has text."""
        return next((turn.answer for turn in reversed(self.turns) if turn.answer), "")

    def messages(self) -> tuple[Message, ...]:
        """What the model is given: the system prompt, answered turns, and the open question.

        A question whose answer never began is left out, so that the next one is answered and not the old one.
        """
        sent = [Message("system", self.system_prompt)] if self.system_prompt.strip() else []
        for turn in self.turns:
            if turn.answer or turn.open:
                sent.append(Message("user", turn.question))
            if turn.answer and not turn.open:
                sent.append(Message("assistant", turn.answer))
        return tuple(sent)
