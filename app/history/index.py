"""The full-text index: kept up behind the rows, and asked. Without the module texts are read instead."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from app.history.words import Phrase, match, says, tokens

# The first turn of a conversation that has what was looked for, by the conversation; 0: its title has it.
Hits = dict[int, int]

_OPEN = "state IN ('waiting', 'streaming')"
_PIECES = "(SELECT text FROM pieces WHERE turn = turns.number ORDER BY position)"
_WORDS = f"question || char(10) || answer || coalesce((SELECT group_concat(text, '') FROM {_PIECES}), '')"
_TURNS = f"SELECT turns.number, {_WORDS} FROM turns JOIN texts ON texts.turn = turns.number"
_TITLES = "SELECT number, heading FROM conversations"
_PUT = "INSERT OR REPLACE INTO search (rowid, words) VALUES (?, ?)"


def behind(connection: sqlite3.Connection) -> bool:
    """Whether something changed that the index does not know."""
    changed = """SELECT EXISTS (SELECT 1 FROM turns WHERE indexed = 0)
        OR EXISTS (SELECT 1 FROM conversations WHERE indexed = 0)"""
    return bool(connection.execute(changed).fetchone()[0])


def refresh(connection: sqlite3.Connection, limit: int) -> bool:
    """Index up to `limit` changed titles and as many changed turns that ended; whether there may be more."""
    titles = connection.execute(f"{_TITLES} WHERE indexed = 0 LIMIT ?", (limit,)).fetchall()
    for number, text in titles:
        connection.execute(_PUT, (-number, tokens(text)))
        connection.execute("UPDATE conversations SET indexed = 1 WHERE number = ?", (number,))
    ended = f"{_TURNS} WHERE indexed = 0 AND NOT {_OPEN} LIMIT ?"
    turns = connection.execute(ended, (limit,)).fetchall()
    for number, text in turns:
        connection.execute(_PUT, (number, tokens(text)))
        connection.execute("UPDATE turns SET indexed = 1 WHERE number = ?", (number,))
    return max(len(titles), len(turns)) == limit


def refresh_growing(connection: sqlite3.Connection) -> None:
    """Index answers that have no end yet as they are now; they stay to be indexed."""
    for number, text in connection.execute(f"{_TURNS} WHERE {_OPEN}").fetchall():
        connection.execute(_PUT, (number, tokens(text)))


def remove(connection: sqlite3.Connection, numbers: Iterable[int]) -> None:
    """Take entries out: turns by number, titles by their conversation's number with a minus sign."""
    connection.executemany("DELETE FROM search WHERE rowid = ?", [(number,) for number in numbers])


def find(connection: sqlite3.Connection, full_text: bool, wanted: tuple[Phrase, ...]) -> Hits:
    """Conversations that hold every phrase; their hit is a turn with all of them, if there is one."""
    look = _asked if full_text else _read
    each = [look(connection, (phrase,)) for phrase in wanted]
    found = {number: turn for number, turn in each[0].items() if all(number in hits for hits in each[1:])}
    if len(wanted) > 1 and found:
        together = look(connection, wanted)
        found.update((number, turn) for number, turn in together.items() if turn and number in found)
    return found


def _asked(connection: sqlite3.Connection, wanted: tuple[Phrase, ...]) -> Hits:
    query = (" ".join(map(match, wanted)),)
    titles = connection.execute("SELECT -rowid FROM search WHERE search MATCH ? AND rowid < 0", query)
    turns = connection.execute(
        """SELECT conversation, min(number) FROM search JOIN turns ON number = search.rowid
        WHERE search MATCH ? GROUP BY conversation""",
        query,
    )
    return {row[0]: 0 for row in titles} | {row[0]: row[1] for row in turns}


def _read(connection: sqlite3.Connection, wanted: tuple[Phrase, ...]) -> Hits:
    connection.create_function("says", 1, lambda text: all(says(text, phrase) for phrase in wanted))
    titles = connection.execute("SELECT number FROM conversations WHERE says(heading)")
    turns = connection.execute(
        f"""SELECT conversation, min(turns.number) FROM turns JOIN texts ON texts.turn = turns.number
        WHERE says({_WORDS}) GROUP BY conversation"""
    )
    return {row[0]: 0 for row in titles} | {row[0]: row[1] for row in turns}
