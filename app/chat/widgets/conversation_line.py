"""How a conversation looks in a list, for any width."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from rich.cells import cell_len
from textual.content import Content
from textual.style import Style

from app.history import dates
from app.history.excerpt import Excerpt
from app.history.listing import Entry
from app.history.titles import fit
from app.history.words import Phrase, Span, spans
from app.text import one_line

COMPONENTS = ("title", "facts", "day", "excerpt", "hit", "open")
# From this width on a line says what its numbers are, and which model answered.
WIDE = 84
_MAX_MODEL = 28
_INDENT = "  "

Part = tuple[str, Style]


@dataclass(frozen=True, slots=True)
class Found:
    """What a list is about: the words looked for, the conversation in the chat, seconds since the epoch."""

    wanted: tuple[Phrase, ...] = ()
    open_id: str = ""
    now: float = 0.0


def line(entry: Entry, width: int, found: Found, style: Callable[[str], Style]) -> Content:
    """Title and facts, and below what stands around the words that were looked for."""
    facts = _facts(entry, width >= WIDE, found.now)
    mark = "● " if entry.id == found.open_id else _INDENT
    title = fit(one_line(entry.title), max(width - cell_len(mark) - cell_len(facts) - 2, 0))
    gap = max(width - cell_len(mark) - cell_len(title) - cell_len(facts), 1)
    marked = _marked(title, spans(title, found.wanted), style("title"), style("hit"))
    parts: list[Part] = [(mark, style("open")), *marked, (" " * gap + facts, style("facts"))]
    if found.wanted:
        parts += [("\n" + _INDENT, style("excerpt")), *_excerpt(entry.excerpt, style)]
    return Content.assemble(*parts)


def _facts(entry: Entry, wide: bool, now: float) -> str:
    when = dates.moment(entry.updated, now)
    if not wide:
        return f"{entry.messages} · {when}"
    messages = f"{entry.messages} message" + "s" * (entry.messages != 1)
    model = fit(one_line(entry.model), _MAX_MODEL)
    return " · ".join(filter(None, [messages, model, when]))


def _excerpt(excerpt: Excerpt | None, style: Callable[[str], Style]) -> Iterator[Part]:
    found = excerpt or Excerpt("in the title", ())
    return _marked(found.text, found.spans, style("excerpt"), style("hit"))


def _marked(text: str, hits: Iterable[Span], plain: Style, hit: Style) -> Iterator[Part]:
    end = 0
    for start, stop in hits:
        yield text[end:start], plain
        yield text[start:stop], hit
        end = stop
    yield text[end:], plain
