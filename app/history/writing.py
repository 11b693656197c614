"""Changes of the history's rows, each within a transaction of its caller."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from app.conversation import Conversation, Turn
from app.history import rows, tree
from app.history.titles import heading

_HEAD = """INSERT INTO conversations
    (id, title, heading, system_prompt, model, messages, created, updated)
    VALUES (:id, :title, :heading, :system_prompt, :model, :messages, :created, :updated)
    ON CONFLICT (id) DO UPDATE SET title = excluded.title, system_prompt = excluded.system_prompt,
    model = excluded.model, messages = excluded.messages, deleted = NULL,
    indexed = indexed AND heading = excluded.heading, heading = excluded.heading,
    updated = max(updated, excluded.updated)"""
_TURN = """INSERT INTO turns (id, conversation, parent, shown, state, model, created)
    VALUES (:id, :conversation, :parent, 1, :state, :model, :created)
    ON CONFLICT (id) DO UPDATE SET state = excluded.state, model = excluded.model, indexed = 0
    WHERE conversation = excluded.conversation"""
_TEXTS = """INSERT OR REPLACE INTO texts
    (turn, question, answer, finish_reason, failure, dropped_messages, stats)
    VALUES (:number, :question, :answer, :finish_reason, :failure, :dropped_messages, :stats)"""
_PIECE = """INSERT OR REPLACE INTO pieces (turn, position, text)
    SELECT number, ?, ? FROM turns WHERE id = ?"""


def number_of(connection: sqlite3.Connection, id: str) -> int | None:
    """The number of a conversation, None where it is not in the file."""
    row = connection.execute("SELECT number FROM conversations WHERE id = ?", (id,)).fetchone()
    return row[0] if row else None


def emptied(connection: sqlite3.Connection, id: str) -> int | None:
    """Drop a conversation if no turn of it is left; the number it had, None where it stays."""
    number = number_of(connection, id)
    if connection.execute("SELECT 1 FROM turns WHERE conversation = ?", (number,)).fetchone():
        return None
    connection.execute("DELETE FROM conversations WHERE number = ?", (number,))
    return number


def holds(connection: sqlite3.Connection, conversation: Conversation, parent: str) -> bool:
    """Whether the file has a conversation and a turn that others follow (empty: the beginning)."""
    number = number_of(connection, conversation.id)
    if number is None or not parent:
        return number is not None
    there = "SELECT 1 FROM turns WHERE id = ? AND conversation = ?"
    return connection.execute(there, (parent, number)).fetchone() is not None


def knows_any(connection: sqlite3.Connection, conversation: Conversation) -> bool:
    """Whether an id of the conversation or of one of its turns is in the file."""
    there = "SELECT 1 FROM turns WHERE id = ?"
    ids = ((turn.id,) for turn in conversation.all_turns)
    return number_of(connection, conversation.id) is not None or any(
        connection.execute(there, id).fetchone() for id in ids
    )


def whole(connection: sqlite3.Connection, conversation: Conversation, updated: float) -> None:
    """A conversation with every turn; turns of it that are in the file only stay there."""
    head(connection, conversation, updated)
    for each in conversation.all_turns:
        turn(connection, conversation, each)
    shown(connection, conversation)


def head(connection: sqlite3.Connection, conversation: Conversation, updated: float) -> None:
    """What is said of a whole conversation. `updated` moves it in lists, if it is later than before.

    Whoever writes to a deleted conversation brings it back.
    """
    path = conversation.turns
    values = {
        "id": conversation.id,
        "title": rows.storable(conversation.title),
        "heading": rows.storable(heading(conversation)),
        "system_prompt": rows.storable(conversation.system_prompt),
        "model": next((rows.storable(turn.model) for turn in reversed(path) if turn.model), ""),
        "messages": sum(1 + bool(turn.answer or turn.open) for turn in path),
        "created": conversation.created,
        "updated": updated,
    }
    connection.execute(_HEAD, values)


def turn(connection: sqlite3.Connection, conversation: Conversation, turn: Turn) -> None:
    """One turn, all of it. ValueError when its id belongs to another conversation."""
    values = rows.turn_values(turn)
    values["conversation"] = number_of(connection, conversation.id)
    connection.execute(_TURN, values)
    known = "SELECT number FROM turns WHERE id = :id AND conversation = :conversation"
    row = connection.execute(known, values).fetchone()
    if row is None:
        raise ValueError(f"turn {turn.id} belongs to another conversation")
    connection.execute(_TEXTS, values | {"number": row["number"]})
    connection.execute("DELETE FROM pieces WHERE turn = ?", (row["number"],))


def piece(connection: sqlite3.Connection, id: str, start: int, text: str) -> bool:
    """What an answer is from character `start` on; whether the turn is in the file."""
    return connection.execute(_PIECE, (start, rows.storable(text), id)).rowcount == 1


def shown(connection: sqlite3.Connection, conversation: Conversation) -> None:
    """Which variant is shown in every place of the tree."""
    chosen = tree.shown(conversation)
    marks = [(int(turn.id in chosen), turn.id) for turn in conversation.all_turns]
    connection.executemany("UPDATE turns SET shown = ?1 WHERE id = ?2 AND shown <> ?1", marks)


def remove_turns(connection: sqlite3.Connection, ids: Iterable[str]) -> None:
    """Turns with their texts."""
    connection.executemany("DELETE FROM turns WHERE id = ?", [(id,) for id in ids])
