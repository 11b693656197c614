"""Conversations as one JSON document, and back: versioned, with every branch, and read with suspicion.

    {"format": "decdec-chat conversations", "version": 1, "conversations": [
      {"id": "…", "title": "…", "system_prompt": "…", "created": 1767225600.0, "turns": [
        {"id": "…", "parent": "", "shown": true, "question": "…", "answer": "…", "state": "done",
         "finish_reason": "stop", "failure": "", "model": "…", "created": 1767225601.5,
         "dropped_messages": 0, "stats": {…} or null}, …]}, …]}

Times are seconds since the epoch. A turn is one question with one answer; turns of one parent are variants of
each other, in their order, and `shown` marks the one that is seen (none: the last). Parents stand before
children, "" is the beginning. `stats` holds the figures of `runtime.protocol.events.Stats`. Fields that are
missing have the values above's empty ones, fields that version 1 does not know are left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from app.conversation import Conversation, Turn, TurnState
from app.history import rows, tree
from app.history.titles import MAX_GIVEN
from runtime.protocol.events import Stats

FORMAT, VERSION = "decdec-chat conversations", 1
MAX_CONVERSATIONS, MAX_TURNS, MAX_DEPTH, MAX_FAILURE = 10_000, 20_000, 5_000, 4_000
# Numbers beyond are no measurement, and no JSON reader agrees on them.
MAX_NUMBER = 1 << 53
_MAX_TIME = 1e11

_Id = Annotated[str, Meta(pattern=r"\A[0-9A-Za-z_-]{1,64}\Z")]
_Name = Annotated[str, Meta(max_length=MAX_GIVEN)]
_Time = Annotated[float, Meta(ge=0.0, le=_MAX_TIME)]


class TurnDocument(msgspec.Struct, frozen=True):
    """One question and one answer to it."""

    id: _Id
    question: str
    parent: Annotated[str, Meta(max_length=64)] = ""
    shown: bool = False
    answer: str = ""
    state: Literal["done", "failed"] = "done"
    finish_reason: Annotated[str, Meta(max_length=40)] = ""
    failure: Annotated[str, Meta(max_length=MAX_FAILURE)] = ""
    model: _Name = ""
    created: _Time = 0.0
    dropped_messages: Annotated[int, Meta(ge=0, le=1_000_000)] = 0
    stats: Stats | None = None


class ConversationDocument(msgspec.Struct, frozen=True):
    """One conversation with every branch."""

    id: _Id
    title: _Name = ""
    system_prompt: str = ""
    created: _Time = 0.0
    turns: Annotated[tuple[TurnDocument, ...], Meta(max_length=MAX_TURNS)] = ()


class _Head(msgspec.Struct, frozen=True):
    format: str
    version: int


class Document(msgspec.Struct, frozen=True):
    """The whole file."""

    format: str
    version: int
    conversations: Annotated[tuple[ConversationDocument, ...], Meta(max_length=MAX_CONVERSATIONS)]


def encode(conversations: Iterable[Conversation]) -> bytes:
    """The document of some conversations, indented for people."""
    document = Document(FORMAT, VERSION, tuple(map(_document, conversations)))
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def decode(data: bytes) -> list[Conversation]:
    """The conversations of a document that anybody may have written.

    ValueError when it is no such document, of another version, or not a forest of turns.
    """
    try:
        head = msgspec.json.decode(data, type=_Head)
        if head.format != FORMAT:
            raise ValueError("it is of another program")
        if head.version != VERSION:
            raise ValueError(f"it has version {head.version}, and this program knows {VERSION}")
        found = msgspec.json.decode(data, type=Document).conversations
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(str(error)) from error
    if not (begun := [each for each in found if each.turns]):
        raise ValueError("none in it has a question")
    return [_conversation(each) for each in begun]


def _document(conversation: Conversation) -> ConversationDocument:
    chosen = tree.shown(conversation)
    turns = tuple(_turn_document(turn, turn.id in chosen) for turn in conversation.all_turns)
    text = rows.storable
    return ConversationDocument(
        conversation.id,
        text(conversation.title)[:MAX_GIVEN],
        text(conversation.system_prompt),
        conversation.created,
        turns,
    )


def _turn_document(turn: Turn, shown: bool) -> TurnDocument:
    text = rows.storable
    return TurnDocument(
        id=turn.id,
        question=text(turn.question),
        parent=turn.parent,
        shown=shown,
        answer=text(turn.answer),
        state="failed" if turn.state is TurnState.FAILED else "done",
        finish_reason=rows.INTERRUPTED if turn.open else text(turn.finish_reason),
        failure=text(turn.failure)[:MAX_FAILURE],
        model=text(turn.model)[:MAX_GIVEN],
        created=turn.created,
        dropped_messages=turn.dropped_messages,
        stats=turn.stats if _measured(turn.stats) else None,
    )


def _conversation(found: ConversationDocument) -> Conversation:
    made = Conversation(found.system_prompt, found.title, found.id, found.created)
    depths = {"": 0}
    for each in found.turns:
        made.add(_turn(each))
        depths[each.id] = depths[each.parent] + 1
        if depths[each.id] > MAX_DEPTH:
            raise ValueError(f"more than {MAX_DEPTH} turns follow each other")
    for turn, each in zip(made.all_turns, found.turns, strict=True):
        if each.shown:
            made.choose(turn)
    return made


def _turn(found: TurnDocument) -> Turn:
    if not _measured(found.stats):
        raise ValueError(f"the figures of turn {found.id} are out of range")
    values = {name: getattr(found, name) for name in TurnDocument.__struct_fields__ if name != "shown"}
    return Turn(**values | {"state": TurnState(found.state)})


def _measured(stats: Stats | None) -> bool:
    """Whether all figures are numbers that a reader of JSON can hold; infinity is none."""
    if stats is None:
        return True
    values = [*msgspec.structs.astuple(stats), *msgspec.structs.astuple(stats.k_chunk)]
    return all(abs(value) <= MAX_NUMBER for value in values if isinstance(value, int | float))
