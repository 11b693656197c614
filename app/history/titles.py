"""What a conversation is called, in one line."""

from __future__ import annotations

from rich.cells import cell_len, split_graphemes

from app.conversation import Conversation
from app.text import one_line

MAX_CELLS = 60
# A given title may be longer than an automatic one; a list cuts it where it must.
MAX_GIVEN = 300
UNTITLED = "Untitled"
# Enough for any title; a question can be a whole pasted file.
_HEAD = 1000


def heading(conversation: Conversation) -> str:
    """The title somebody gave, else the first words of the first question that is shown."""
    if given := one_line(conversation.title[:MAX_GIVEN]):
        return given
    turns = conversation.turns
    return fit(one_line(turns[0].question[:_HEAD]), MAX_CELLS) if turns else UNTITLED


def fit(text: str, cells: int) -> str:
    """At most so many cells: cut behind a word where one ends in the second half, never in a character."""
    if cell_len(text) <= cells:
        return text
    head = _head(text, cells - 1)
    blank = len(head) if text[len(head)] == " " else head.rfind(" ")
    return (head[:blank] if blank > len(head) // 2 else head).rstrip() + "…" if cells > 0 else ""


def _head(text: str, cells: int) -> str:
    end = 0
    for _, stop, width in split_graphemes(text)[0]:
        cells -= width
        if cells < 0:
            break
        end = stop
    return text[:end]
