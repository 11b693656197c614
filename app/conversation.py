"""A conversation: a tree of questions with their answers, of which one path is shown and sent."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum

from app.thinking import visible
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
    "interrupted": "interrupted, the program ended before the answer did",
}


def new_id() -> str:
    """A name that no other turn or conversation has, on any machine."""
    return uuid.uuid4().hex


@dataclass(slots=True)
class Turn:
    """One question and one answer to it, which may be partial.

    `parent`: id of the turn before, empty for the first. Turns with the same parent are variants of each
    other: another answer to the same question, or an edited question. `created`: seconds since the epoch.
    """

    question: str
    answer: str = ""
    state: TurnState = TurnState.WAITING
    finish_reason: str = ""
    failure: str = ""
    stats: Stats | None = None
    dropped_messages: int = 0
    model: str = ""
    id: str = field(default_factory=new_id)
    parent: str = ""
    created: float = field(default_factory=time.time)

    @property
    def ending(self) -> str:
        """How it ended, in words; empty for an ordinary end."""
        return self.failure or _ENDINGS.get(self.finish_reason, "")

    @property
    def open(self) -> bool:
        """Whether more text may come."""
        return self.state in (TurnState.WAITING, TurnState.STREAMING)

    @property
    def cut(self) -> bool:
        """Whether the answer may go on where it ended."""
        return bool(self.answer) and not self.open and (bool(self.failure) or self.finish_reason in _ENDINGS)


class Conversation:
    """Turns by id, and the path through them that is shown."""

    def __init__(self, system_prompt: str = "", title: str = "", id: str = "", created: float = 0.0) -> None:
        self.system_prompt, self.title = system_prompt, title
        self.id = id or new_id()
        self.created = created or time.time()
        self._all: dict[str, Turn] = {}
        self._chosen: dict[str, str] = {}

    @classmethod
    def of(cls, turns: Iterable[Turn], leaf: str = "", **fields: str | float) -> Conversation:
        """A conversation with these turns, parents before children; the path that ends in `leaf` is shown."""
        made = cls(**fields)  # type: ignore[arg-type]
        for turn in turns:
            made.add(turn)
        made.show(leaf)
        return made

    @property
    def turns(self) -> list[Turn]:
        """The shown path, oldest first."""
        return list(self._path())

    @property
    def all_turns(self) -> list[Turn]:
        """Every turn of every branch, parents before children."""
        return list(self._all.values())

    @property
    def last(self) -> Turn | None:
        """The newest turn of the path."""
        turns = self.turns
        return turns[-1] if turns else None

    @property
    def last_answer(self) -> str:
        """The newest answer of the path that has text, without its thinking."""
        return next((visible(turn.answer) for turn in reversed(self.turns) if turn.answer), "")

    def add(self, turn: Turn) -> Turn:
        """Put a turn below its parent and show it. ValueError when the parent is not there."""
        if turn.parent and turn.parent not in self._all:
            raise ValueError(f"turn {turn.id} has no parent {turn.parent}")
        if turn.id in self._all:
            raise ValueError(f"turn {turn.id} is there twice")
        self._all[turn.id] = turn
        self._chosen[turn.parent] = turn.id
        return turn

    def ask(self, question: str, model: str = "") -> Turn:
        """A new turn at the end of the path."""
        last = self.last
        return self.add(Turn(question, parent=last.id if last else "", model=model))

    def branch(self, turn: Turn, question: str, model: str = "") -> Turn:
        """Another turn in the place of `turn`: the same question again, or an edited one."""
        return self.add(Turn(question, parent=turn.parent, model=model))

    def variants(self, turn: Turn) -> list[Turn]:
        """Every turn in the place of this one, in the order they were made, this one among them."""
        return [other for other in self._all.values() if other.parent == turn.parent]

    def choose(self, turn: Turn) -> None:
        """Show the path that leads through this turn."""
        self._chosen[turn.parent] = turn.id

    def step(self, turn: Turn, direction: int) -> Turn | None:
        """Show the variant before (-1) or behind (1) a turn; None where there is none."""
        variants = self.variants(turn)
        at = variants.index(turn) + direction
        if not 0 <= at < len(variants):
            return None
        self.choose(variants[at])
        return variants[at]

    def shown_variant(self, turn: Turn) -> Turn | None:
        """The turn that is shown in the place of this one."""
        return self._all.get(self._chosen.get(turn.parent, ""))

    def show(self, leaf: str) -> None:
        """Show the path through the turn of this id; nothing changes if it is not there."""
        while turn := self._all.get(leaf):
            self.choose(turn)
            leaf = turn.parent

    def remove(self, turn: Turn) -> list[Turn]:
        """Take out a turn with everything that was said after it; gives what was taken, for `restore`."""
        gone = [turn, *self._below(turn)]
        for each in gone:
            del self._all[each.id]
            self._chosen.pop(each.id, None)
        left = [other.id for other in self._all.values() if other.parent == turn.parent]
        if left:
            self._chosen[turn.parent] = left[-1]
        else:
            self._chosen.pop(turn.parent, None)
        return gone

    def restore(self, turns: Iterable[Turn]) -> None:
        """Put back what `remove` gave."""
        for turn in turns:
            self.add(turn)

    def messages(self) -> tuple[Message, ...]:
        """What the model is given: the system prompt, answered turns, and the open question.

        A question whose answer never began is left out, so that the next one is answered and not the old one.
        An open turn that has text already is to be continued: its text is the last message. Thinking of
        earlier answers is not sent back.
        """
        sent = [Message("system", self.system_prompt)] if self.system_prompt.strip() else []
        for turn in self.turns:
            if turn.answer or turn.open:
                sent.append(Message("user", turn.question))
            if turn.answer:
                sent.append(Message("assistant", turn.answer if turn.open else visible(turn.answer)))
        return tuple(sent)

    def _path(self) -> Iterator[Turn]:
        at = self._chosen.get("")
        while at:
            yield self._all[at]
            at = self._chosen.get(at)

    def _below(self, turn: Turn) -> list[Turn]:
        """Every descendant; insertion order has parents before children."""
        found = {turn.id}
        below = []
        for other in self._all.values():
            if other.parent in found:
                found.add(other.id)
                below.append(other)
        return below
