"""Conversations as a list shows them."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from app.history import rows, schema
from app.history.excerpt import Excerpt, excerpt
from app.history.index import Hits
from app.history.words import Phrase

_KEPT = "SELECT number FROM conversations WHERE deleted IS NULL ORDER BY updated DESC, number DESC"


@dataclass(frozen=True, slots=True)
class Entry:
    """One conversation. `updated`: seconds since the epoch of its last turn; `messages`: on its shown path.

    `excerpt`: what stands around the words of a search, None where only the title has them.
    """

    id: str
    title: str
    updated: float
    messages: int
    model: str
    excerpt: Excerpt | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """The newest entries, of how many there are."""

    entries: tuple[Entry, ...] = ()
    total: int = 0


def page(connection: sqlite3.Connection, hits: Hits | None, wanted: tuple[Phrase, ...], limit: int) -> Page:
    """Up to `limit` conversations, newest first; of `hits`, if these are given."""
    numbers = [row[0] for row in connection.execute(_KEPT) if hits is None or row[0] in hits]
    shown = [entry(connection, number, (hits or {}).get(number, 0), wanted) for number in numbers[:limit]]
    return Page(tuple(shown), len(numbers))


def entry(
    connection: sqlite3.Connection, number: int, hit: int = 0, wanted: tuple[Phrase, ...] = ()
) -> Entry:
    """The entry of a conversation, with an excerpt of the turn `hit` unless that is 0."""
    row = connection.execute("SELECT * FROM conversations WHERE number = ?", (number,)).fetchone()
    if row is None:
        raise schema.ForeignError(f"conversation {number} is in a list and nowhere else")
    around = _around(connection, hit, wanted) if hit else None
    return Entry(row["id"], row["heading"], row["updated"], row["messages"], row["model"], around)


def _around(connection: sqlite3.Connection, turn: int, wanted: tuple[Phrase, ...]) -> Excerpt | None:
    row = connection.execute("SELECT * FROM texts WHERE turn = ?", (turn,)).fetchone()
    texts = (rows.answer_of(connection, row), row["question"]) if row else ()
    return next((found for text in texts if (found := excerpt(text, wanted))), None)
