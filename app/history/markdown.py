"""A conversation as Markdown, for people to read."""

from __future__ import annotations

import re
from collections.abc import Iterator

from app import facts
from app.conversation import Conversation, Turn
from app.history import dates
from app.history.titles import heading
from app.text import neutralise, one_line
from app.thinking import split

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")


def document(conversation: Conversation) -> str:
    """The shown path: who said what, with a line of facts below every answer."""
    return "\n\n".join(_parts(conversation)) + "\n"


def _parts(conversation: Conversation) -> Iterator[str]:
    turns = conversation.turns
    models = dict.fromkeys(one_line(turn.model) for turn in turns if turn.model)
    yield f"# {one_line(heading(conversation))}"
    yield "*" + " · ".join([dates.stamp(conversation.created), *models]) + "*"
    if conversation.system_prompt.strip():
        yield "## System prompt"
        yield _quoted(conversation.system_prompt)
    for turn in turns:
        yield from _turn(conversation, turn)


def _turn(conversation: Conversation, turn: Turn) -> Iterator[str]:
    yield "## You"
    yield closed(neutralise(turn.question.strip()))
    yield f"## {one_line(turn.model) or 'Answer'}"
    said = split(turn.answer)
    if said.thinking:
        yield _quoted(said.thinking)
    if said.text.strip():
        yield closed(neutralise(said.text.strip()))
    variants = conversation.variants(turn)
    if line := facts.of(turn, (variants.index(turn) + 1, len(variants))):
        yield f"*{one_line(line)}*"


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in closed(neutralise(text.strip())).split("\n"))


def closed(text: str) -> str:
    """The text with its last code block ended, so that a cut answer does not take the rest of the page."""
    fence = ""
    for line in text.split("\n"):
        found = _FENCE.match(line)
        if found is None:
            continue
        mark, rest = found.groups()
        if not fence:
            fence = mark
        elif mark.startswith(fence) and not rest.strip():
            fence = ""
    return f"{text}\n{fence}" if fence else text
