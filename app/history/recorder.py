"""Writes a session's conversations into the history while they happen."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import partial

from app.conversation import Conversation, Turn
from app.history.store import History
from app.journal import Journal
from app.text import one_line
from runtime.errors import DecdecError

# Every token is written at once, unless the disk takes longer than this for one.
QUICK_S = 0.002
# A slow disk may take this share of the time while an answer grows, and gets larger pieces.
WRITING_SHARE = 0.1
# Text is in the file after so long at the latest, however slow the disk is; before it is drawn in any case.
MAX_WAIT_S = 0.3
# While the file refuses, growing answers try again this often; ends of answers do at once.
RETRY_S = 1.0
# Rows that are brought into the index behind an answer: its own, and some of a program that was killed.
INDEXED_AT_ONCE = 8


@dataclass(slots=True)
class WritePace:
    """When the next piece of a growing answer is due. One slow write among quick ones changes nothing."""

    due_at: float = 0.0
    _last_s: float = 0.0

    def wrote(self, started: float, ended: float) -> None:
        """Record one write."""
        cost, self._last_s = min(ended - started, self._last_s), ended - started
        self.due_at = ended + min(cost / WRITING_SHARE, MAX_WAIT_S) if cost > QUICK_S else ended


@dataclass(slots=True)
class Owed:
    """A conversation that has to be written whole, and the turns that have to go from the file."""

    conversation: Conversation
    gone: set[str] = field(default_factory=set)


class Recorder(Journal):
    """Never raises: trouble is told to `on_problem` once, in a sentence, and the chat goes on.

    What could not be written is written whole at the next change, or by `close`.
    """

    def __init__(
        self,
        history: History,
        on_problem: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._history, self._on_problem, self._clock = history, on_problem, clock
        self._told = history.problem
        self._owed: dict[str, Owed] = {}
        self._pace = WritePace()
        self._retry_at = 0.0
        # The answer that grows in the file, and how many of its characters are there.
        self._growing, self._written = "", 0

    def conversation(self, conversation: Conversation) -> None:
        """Keep title, system prompt and shown path of a conversation that was begun."""
        if conversation.all_turns:
            self._write(conversation, lambda: self._history.save_head(conversation))

    def turn(self, conversation: Conversation, turn: Turn) -> None:
        """Keep a turn as it is now."""
        if owed := self._owed.get(conversation.id):
            owed.gone.discard(turn.id)
        if turn.open and turn.id == self._growing:
            self._grow(conversation, turn)
            return
        self._growing, self._written = (turn.id, len(turn.answer)) if turn.open else ("", 0)
        kept = self._write(conversation, lambda: self._history.save_turn(conversation, turn))
        if kept and not turn.open and self._try(lambda: self._history.index(INDEXED_AT_ONCE)):
            self._told = ""

    def drawing(self, conversation: Conversation, turn: Turn) -> None:
        """Keep what waits of a growing answer: what was seen must not be gone after a kill."""
        if turn.open and turn.id == self._growing and len(turn.answer) > self._written:
            self._grow(conversation, turn, at_once=True)

    def removed(self, conversation: Conversation, turns: Sequence[Turn]) -> None:
        """Take turns out of the file."""
        gone = {turn.id for turn in turns}
        self._write(conversation, lambda: self._history.remove(conversation, gone), gone)

    def close(self) -> None:
        """Write what is owed, drop what was deleted long ago, and let go of the file."""
        self._pay()
        self._try(self._history.purge)
        self._history.close()

    def _grow(self, conversation: Conversation, turn: Turn, at_once: bool = False) -> None:
        now = self._clock()
        due = self._retry_at if self._owed else 0.0 if at_once else self._pace.due_at
        if now < due:
            return
        start, self._written = self._written, len(turn.answer)
        if self._write(conversation, lambda: self._history.grow(conversation, turn, start)):
            self._pace.wrote(now, self._clock())

    def _write(
        self, conversation: Conversation, work: Callable[[], None], gone: Collection[str] = ()
    ) -> bool:
        """Do the work, or instead of it all that is owed; whether the file is up to date now."""
        if not self._owed and self._try(work):
            return True
        owed = self._owed.setdefault(conversation.id, Owed(conversation))
        owed.gone.update(gone)
        return self._pay()

    def _pay(self) -> bool:
        for id, owed in list(self._owed.items()):
            if self._try(partial(self._save, owed)):
                del self._owed[id]
        return not self._owed

    def _save(self, owed: Owed) -> None:
        if owed.conversation.all_turns:
            self._history.save(owed.conversation, owed.gone)
        else:
            self._history.remove(owed.conversation, owed.gone)

    def _try(self, work: Callable[[], None]) -> bool:
        try:
            work()
        # Whatever goes wrong here, the chat must go on.
        except Exception as error:
            self._tell(error)
            return False
        return True

    def _tell(self, error: Exception) -> None:
        self._retry_at = self._clock() + RETRY_S
        cause = (
            error
            if isinstance(error, DecdecError)
            else DecdecError("Conversations are not kept", repr(error))
        )
        if cause.sentence != self._told:
            self._told = cause.sentence
            self._on_problem(one_line(cause.sentence))
