"""The history: conversations in one file, changed turn by turn and found again."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from app.conversation import Conversation, Turn
from app.history import index, listing, rows, tree, writing
from app.history.database import Database
from app.history.listing import Entry, Page
from app.history.titles import MAX_GIVEN
from app.history.words import phrases
from runtime import locations
from runtime.errors import DecdecError

# A deleted conversation can come back for so long.
KEPT_DELETED_S = 7 * 24 * 3600
# No clock that goes right says less: this program did not exist before 2026.
FIRST_S = 1767225600.0
# A clock that goes right is set back by less than this at a time.
CORRECTION_S = 3600.0
BEHIND_S = 0.001
# Rows that a search brings into the index before it looks: about a second's work.
BACKLOG = 4000
# Rows that are indexed in one transaction, so that nobody who writes has to wait for long.
AT_ONCE = 200


class History:
    """Every method raises DecdecError when the file cannot be used. For one thread, as its database is.

    `clock`: seconds since the epoch.
    """

    def __init__(self, path: Path | None = None, clock: Callable[[], float] = time.time) -> None:
        self.database = Database(path or locations.history_file())
        self.problem = ""
        self._clock = clock

    @classmethod
    def open(cls) -> tuple[History, str]:
        """The history of this user, and a sentence about trouble with it (empty: none)."""
        history = cls()
        try:
            with history.database.reading():
                pass
        except DecdecError as error:
            history.problem = error.sentence
        return history, history.problem

    def close(self) -> None:
        """Let go of the file."""
        self.database.close()

    # Writing

    def save(
        self, conversation: Conversation, gone: Collection[str] = (), updated: float | None = None
    ) -> None:
        """Write all of a conversation and take out the turns `gone`; turns it does not know stay."""
        with self.database.changing() as connection:
            self._take_out(connection, gone)
            writing.whole(connection, conversation, self._now(connection) if updated is None else updated)

    def save_turn(self, conversation: Conversation, turn: Turn) -> None:
        """Write one turn, and what it stands on where the file has lost that; once it has ended, durably."""
        with self.database.changing(durable=not turn.open) as connection:
            if not writing.holds(connection, conversation, turn.parent):
                writing.whole(connection, conversation, self._now(connection))
                return
            writing.head(connection, conversation, self._now(connection))
            writing.turn(connection, conversation, turn)
            writing.shown(connection, conversation)

    def save_head(self, conversation: Conversation) -> None:
        """Write title, system prompt and shown path; its place in lists stays."""
        with self.database.changing() as connection:
            if not writing.holds(connection, conversation, ""):
                writing.whole(connection, conversation, self._now(connection))
                return
            writing.head(connection, conversation, 0.0)
            writing.shown(connection, conversation)

    def add(self, conversation: Conversation) -> Conversation:
        """Take in one conversation from elsewhere, as `add_all`."""
        return self.add_all([conversation])[0]

    def add_all(self, conversations: Iterable[Conversation]) -> list[Conversation]:
        """Take in conversations from elsewhere, under new ids where one of their own is there already.

        All of them or none, so that a file that was taken in half is not taken in twice.
        """
        with self.database.changing(durable=True) as connection:
            return [self._added(connection, conversation) for conversation in conversations]

    def _added(self, connection: sqlite3.Connection, conversation: Conversation) -> Conversation:
        if writing.knows_any(connection, conversation):
            conversation = tree.renewed(conversation)
        turns = conversation.all_turns
        newest = max((turn.created for turn in turns), default=conversation.created)
        writing.whole(connection, conversation, min(newest, self._clock()))
        return conversation

    def grow(self, conversation: Conversation, turn: Turn, start: int) -> None:
        """Add what an answer grew by from character `start` on."""
        with self.database.changing() as connection:
            if not writing.piece(connection, turn.id, start, turn.answer[start:]):
                writing.whole(connection, conversation, self._now(connection))

    def remove(self, conversation: Conversation, gone: Collection[str]) -> None:
        """Take turns out for good; with its last turn a conversation is gone too."""
        with self.database.changing() as connection:
            self._take_out(connection, gone)
            if conversation.all_turns:
                writing.head(connection, conversation, 0.0)
                writing.shown(connection, conversation)
            elif number := writing.emptied(connection, conversation.id):
                self._forget(connection, [-number])

    def index(self, limit: int | None = None) -> None:
        """Bring up to `limit` changed turns into the full-text index, if there is one; None: all."""
        more = True
        while more and (limit is None or limit > 0):
            batch = AT_ONCE if limit is None else min(limit, AT_ONCE)
            with self.database.changing() as connection:
                more = self.database.full_text and index.refresh(connection, batch)
            limit = None if limit is None else limit - batch

    def _now(self, connection: sqlite3.Connection) -> float:
        """The time for what happens now, behind everything before where the clock was certainly set back."""
        now = self._clock()
        newest = connection.execute("SELECT max(updated) FROM conversations").fetchone()[0] or 0.0
        set_back = now < FIRST_S or now < newest < now + CORRECTION_S
        return max(now, newest + BEHIND_S) if set_back else now

    def _take_out(self, connection: sqlite3.Connection, ids: Collection[str]) -> None:
        numbers = [
            connection.execute("SELECT number FROM turns WHERE id = ?", (id,)).fetchone() for id in ids
        ]
        self._forget(connection, [row["number"] for row in numbers if row])
        writing.remove_turns(connection, ids)

    def _forget(self, connection: sqlite3.Connection, numbers: Collection[int]) -> None:
        if self.database.full_text:
            index.remove(connection, numbers)

    # Reading

    def load(self, id: str) -> Conversation | None:
        """A conversation as it was left; None where there is none of this id."""
        with self.database.reading() as connection:
            return rows.load(connection, id) if connection else None

    def page(self, words: str = "", limit: int = 100) -> Page:
        """The newest conversations, or those that hold all these words."""
        wanted = phrases(words)
        if words.strip() and not wanted:
            return Page()
        if wanted:
            self._catch_up()
        with self.database.reading() as connection:
            if connection is None:
                return Page()
            hits = index.find(connection, self.database.full_text, wanted) if wanted else None
            return listing.page(connection, hits, wanted, limit)

    def _catch_up(self) -> None:
        """What cannot be indexed now is not found yet; nothing else depends on it."""
        with contextlib.suppress(DecdecError):
            with self.database.reading() as connection:
                late = connection is not None and index.behind(connection)
            if late:
                self.index(BACKLOG)
                with self.database.changing() as connection:
                    if self.database.full_text:
                        index.refresh_growing(connection)

    # Titles, deleting

    def rename(self, id: str, title: str) -> None:
        """Give a title; an empty one is made of the first question again."""
        conversation = self.load(id)
        if conversation is not None:
            conversation.title = title[:MAX_GIVEN]
            self.save_head(conversation)

    def delete(self, id: str) -> None:
        """Take a conversation out of lists; `undelete` brings it back until it is purged."""
        with self.database.changing(durable=True) as connection:
            connection.execute("UPDATE conversations SET deleted = ? WHERE id = ?", (self._clock(), id))

    def undelete(self) -> Entry | None:
        """Bring back what was deleted last; None where nothing is left to bring back."""
        last = "SELECT number FROM conversations WHERE deleted NOT NULL ORDER BY deleted DESC LIMIT 1"
        if not self._numbers(last):
            return None
        with self.database.changing() as connection:
            number = connection.execute(last).fetchone()["number"]
            connection.execute("UPDATE conversations SET deleted = NULL WHERE number = ?", (number,))
            return listing.entry(connection, number)

    def purge(self, older_than_s: float = KEPT_DELETED_S) -> None:
        """Drop for good what was deleted so long ago."""
        before = self._clock() - older_than_s
        for number in self._numbers("SELECT number FROM conversations WHERE deleted <= ?", before):
            with self.database.changing() as connection:
                turns = connection.execute("SELECT number FROM turns WHERE conversation = ?", (number,))
                self._forget(connection, [-number, *(row["number"] for row in turns)])
                connection.execute("DELETE FROM conversations WHERE number = ?", (number,))

    def _numbers(self, query: str, *values: float) -> list[int]:
        with self.database.reading() as connection:
            return [row["number"] for row in connection.execute(query, values)] if connection else []
