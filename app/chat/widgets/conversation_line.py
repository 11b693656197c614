"""How a conversation looks in a list, for any width."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rich.cells import cell_len
from rich.text import Text

from app.history import dates
from app.history.excerpt import Excerpt
from app.history.listing import Entry
from app.history.titles import fit
from app.history.words import Phrase, spans
from app.text import one_line

COMPONENTS = ("title", "facts", "day", "excerpt", "hit", "open")
# From this width on a line says what its numbers are, and which model answered.
WIDE = 64
_MAX_MODEL = 28
_INDENT = "  "


@dataclass(frozen=True, slots=True)
class Found:
    """What a list is about: the words looked for, the conversation in the chat, seconds since the epoch."""

    wanted: tuple[Phrase, ...] = ()
    open_id: str = ""
    now: float = 0.0


def line(entry: Entry, width: int, found: Found, style: Callable[[str], str]) -> Text:
    """Title and facts, and below what stands around the words that were looked for."""
    facts = _facts(entry, width >= WIDE, found.now)
    mark = "● " if entry.id == found.open_id else _INDENT
    title = fit(one_line(entry.title), max(width - cell_len(mark) - cell_len(facts) - 2, 0))
    gap = max(width - cell_len(mark) - cell_len(title) - cell_len(facts), 1)
    text = Text(mark, style("open"), end="")
    text.append_text(_marked(title, tuple(spans(title, found.wanted)), style("title"), style("hit")))
    text.append(" " * gap).append(facts, style("facts"))
    if found.wanted:
        text.append("\n" + _INDENT).append_text(_excerpt(entry.excerpt, style))
    return text


def _facts(entry: Entry, wide: bool, now: float) -> str:
    when = dates.moment(entry.updated, now)
    if not wide:
        return f"{entry.messages} · {when}"
    messages = f"{entry.messages} message" + "s" * (entry.messages != 1)
    model = fit(one_line(entry.model), _MAX_MODEL)
    return " · ".join(filter(None, [messages, model, when]))


def _excerpt(excerpt: Excerpt | None, style: Callable[[str], str]) -> Text:
    if excerpt is None:
        return Text("in the title", style("excerpt"))
    return _marked(excerpt.text, excerpt.spans, style("excerpt"), style("hit"))


def _marked(text: str, hits: tuple[tuple[int, int], ...], plain: str, hit: str) -> Text:
    made = Text(text, plain)
    for start, end in hits:
        made.stylize(hit, start, end)
    return made
