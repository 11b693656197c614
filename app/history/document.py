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

from app.conversation import Conversation, Turn, TurnState, new_id
from app.history import rows
from app.history.titles import MAX_GIVEN
from runtime.protocol.events import Stats

FORMAT, VERSION = "decdec-chat conversations", 1
MAX_CONVERSATIONS, MAX_TURNS, MAX_DEPTH = 10_000, 20_000, 5_000
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
    failure: Annotated[str, Meta(max_length=4000)] = ""
    model: _Name = ""
    created: _Time = 0.0
    dropped_messages: Annotated[int, Meta(ge=0, le=1_000_000)] = 0
    stats: Stats | None = None

    def __post_init__(self) -> None:
        figures = msgspec.to_builtins(self.stats) if self.stats else {}
        for name, value in {**figures, **figures.pop("k_chunk", {})}.items():
            if value is not None and not -MAX_NUMBER <= value <= MAX_NUMBER:
                raise ValueError(f"{name} is out of range")


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


def renewed(conversation: Conversation) -> Conversation:
    """The same conversation under ids that nothing else has."""
    names = {turn.id: new_id() for turn in conversation.all_turns} | {"": ""}
    made = Conversation(conversation.system_prompt, conversation.title, created=conversation.created)
    chosen = []
    for turn in conversation.all_turns:
        values = {name: getattr(turn, name) for name in Turn.__slots__}
        added = made.add(Turn(**values | {"id": names[turn.id], "parent": names[turn.parent]}))
        if conversation.shown_variant(turn) is turn:
            chosen.append(added)
    for turn in chosen:
        made.choose(turn)
    return made


def _document(conversation: Conversation) -> ConversationDocument:
    turns = tuple(_turn_document(conversation, turn) for turn in conversation.all_turns)
    text = rows.storable
    return ConversationDocument(
        conversation.id,
        text(conversation.title)[:MAX_GIVEN],
        text(conversation.system_prompt),
        conversation.created,
        turns,
    )


def _turn_document(conversation: Conversation, turn: Turn) -> TurnDocument:
    text = rows.storable
    return TurnDocument(
        id=turn.id,
        question=text(turn.question),
        parent=turn.parent,
        shown=conversation.shown_variant(turn) is turn,
        answer=text(turn.answer),
        state="failed" if turn.state is TurnState.FAILED else "done",
        finish_reason=rows.INTERRUPTED if turn.open else text(turn.finish_reason),
        failure=text(turn.failure),
        model=text(turn.model),
        created=turn.created,
        dropped_messages=turn.dropped_messages,
        stats=turn.stats,
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
    values = {name: getattr(found, name) for name in TurnDocument.__struct_fields__ if name != "shown"}
    return Turn(**values | {"state": TurnState(found.state)})
