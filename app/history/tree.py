"""Trees of turns, built of what comes from outside and built again."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator

from app.conversation import Conversation, Turn, new_id


def grown(conversation: Conversation, turns: Collection[Turn], shown: Collection[str]) -> Conversation:
    """The empty conversation with these turns in any order, and of the variants the `shown` ids chosen.

    A turn whose parent is not there, or that is below itself, stands at the beginning.
    """
    for turn in _parents_first(list(turns)):
        conversation.add(turn)
    for turn in conversation.all_turns:
        if turn.id in shown:
            conversation.choose(turn)
    return conversation


def shown(conversation: Conversation) -> set[str]:
    """Ids of the turns that are chosen among their variants, off the shown path too."""
    turns = conversation.all_turns
    return {turn.id for turn in turns if conversation.shown_variant(turn) is turn}


def renewed(conversation: Conversation) -> Conversation:
    """The same conversation under ids that nothing else has."""
    names = {turn.id: new_id() for turn in conversation.all_turns} | {"": ""}
    turns = [
        dataclasses.replace(turn, id=names[turn.id], parent=names[turn.parent])
        for turn in conversation.all_turns
    ]
    made = Conversation(conversation.system_prompt, conversation.title, created=conversation.created)
    return grown(made, turns, {names[id] for id in shown(conversation)})


def _parents_first(turns: list[Turn]) -> Iterator[Turn]:
    """In their order, except that children wait for their parents."""
    known = {""}
    while turns:
        waiting = []
        for turn in turns:
            if turn.parent in known:
                known.add(turn.id)
                yield turn
            else:
                waiting.append(turn)
        if len(waiting) == len(turns):
            waiting[0].parent = ""
        turns = waiting
