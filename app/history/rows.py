"""Turns as rows of the history and back."""

from __future__ import annotations

import sqlite3

import msgspec

from app.conversation import Conversation, Turn, TurnState
from app.history import tree
from runtime.protocol.events import Stats

INTERRUPTED = "interrupted"
_TURNS = """SELECT * FROM turns JOIN texts ON texts.turn = turns.number
    WHERE conversation = ? ORDER BY turns.number"""


_NUMBERS = frozenset({
    "number", "conversation", "turn", "position", "shown", "messages", "created", "updated", "deleted",
    "dropped_messages", "indexed",
})  # fmt: skip
_TEXTS = frozenset({
    "id", "title", "heading", "system_prompt", "model", "parent", "state", "question", "answer",
    "finish_reason", "failure", "stats", "text",
})  # fmt: skip
# Seconds of the year 9999, which no date of a calendar exceeds.
_MAX_NUMBER = 253_402_300_799


def read(cursor: sqlite3.Cursor, values: tuple[object, ...]) -> sqlite3.Row:
    """A row whose columns have their own types: SQLite keeps what it is given, from anybody."""
    named = zip(cursor.description, values, strict=True)
    return sqlite3.Row(cursor, tuple(_typed(each[0], value) for each, value in named))


def _typed(column: str, value: object) -> object:
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if value is None or column not in _NUMBERS:
        return value if value is None or isinstance(value, str) or column not in _TEXTS else str(value)
    usable = isinstance(value, int | float) and abs(value) <= _MAX_NUMBER
    return value if usable else 0


def storable(text: str) -> str:
    """The text, with what no file can hold (half of a surrogate pair) as question marks."""
    return text.encode("utf-8", "replace").decode("utf-8")


def turn_values(turn: Turn) -> dict[str, object]:
    """Columns of the tables `turns` and `texts`, without those that only numbers link."""
    return {
        "id": turn.id,
        "parent": turn.parent,
        "state": turn.state.value,
        "model": storable(turn.model),
        "created": turn.created,
        "question": storable(turn.question),
        "answer": storable(turn.answer),
        "finish_reason": storable(turn.finish_reason),
        "failure": storable(turn.failure),
        "dropped_messages": turn.dropped_messages,
        "stats": msgspec.json.encode(turn.stats).decode() if turn.stats else None,
    }


def turn_of(row: sqlite3.Row, answer: str) -> Turn:
    """A turn from its row and its whole answer; one that was open has ended with the program."""
    turn = Turn(
        question=row["question"],
        answer=answer,
        state=_state(row["state"]),
        finish_reason=row["finish_reason"],
        failure=row["failure"],
        stats=_stats(row["stats"]),
        dropped_messages=row["dropped_messages"],
        model=row["model"],
        id=row["id"],
        parent=row["parent"],
        created=row["created"],
    )
    close(turn)
    return turn


def close(turn: Turn) -> None:
    """End a turn that nobody writes any more."""
    if turn.open:
        turn.state, turn.finish_reason = TurnState.DONE, INTERRUPTED


def _state(text: str) -> TurnState:
    """A damaged file may say anything here; nothing depends on it."""
    try:
        return TurnState(text)
    except ValueError:
        return TurnState.DONE


def _stats(text: str | None) -> Stats | None:
    """None also for figures that another version measured and this one cannot read."""
    try:
        return msgspec.json.decode(text, type=Stats) if text else None
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None


def load(connection: sqlite3.Connection, id: str) -> Conversation | None:
    """The conversation of this id, None where there is none."""
    head = connection.execute("SELECT * FROM conversations WHERE id = ?", (id,)).fetchone()
    if head is None:
        return None
    found = connection.execute(_TURNS, (head["number"],)).fetchall()
    turns = [turn_of(row, answer_of(connection, row)) for row in found]
    made = Conversation(head["system_prompt"], head["title"], head["id"], head["created"])
    return tree.grown(made, turns, {row["id"] for row in found if row["shown"]})


def answer_of(connection: sqlite3.Connection, texts: sqlite3.Row) -> str:
    """An answer with the pieces that came since; where they overlap, the later one holds."""
    answer = str(texts["answer"])
    pieces = "SELECT position, text FROM pieces WHERE turn = ? ORDER BY position"
    for piece in connection.execute(pieces, (texts["turn"],)):
        answer = answer[: piece["position"]] + piece["text"]
    return answer
