"""A conversation's line in the list, at any width."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.style import Style

from app.chat.widgets.conversation_line import Found, line
from app.history.excerpt import Excerpt
from app.history.listing import Entry
from app.history.words import phrases

NOW = 1_700_000_000.0
HIT = Style(bold=True)


def entry(title="A title", excerpt=None, **fields):
    return Entry(
        **{"id": "c", "updated": NOW - 300, "messages": 4, "model": "a-model", **fields},
        title=title,
        excerpt=excerpt,
    )


def drawn(given_entry, width, words="", open_id=""):
    return line(
        given_entry,
        width,
        Found(phrases(words), open_id, NOW),
        lambda part: HIT if part == "hit" else Style(),
    )


@pytest.mark.parametrize(
    ("given_entry", "width", "text"),
    [
        (entry(), 90, "  A title" + " " * 49 + "4 messages · a-model · 5 min ago"),
        (entry(messages=1, model=""), 90, "  A title" + " " * 60 + "1 message · 5 min ago"),
        (entry(), 40, "  A title" + " " * 18 + "4 · 5 min ago"),
        (entry("A title that is long"), 30, "  A title that…" + " " * 2 + "4 · 5 min ago"),
        (entry("x\x1b[2J\ny"), 40, "  x␛[2J y" + " " * 18 + "4 · 5 min ago"),
        (entry(), 5, "   4 · 5 min ago"),
    ],
)
def test_facts_stand_at_the_right(given_entry, width, text):
    assert drawn(given_entry, width).plain == text


@given(st.text(max_size=100), st.text(max_size=60), st.integers(30, 200))
def test_it_is_as_wide_as_the_list(title, model, width):
    assert drawn(entry(title, model=model), width).cell_length == width


def test_the_open_one_is_marked_and_hits_are_highlighted():
    found = drawn(entry("Hay", Excerpt("a needle here", ((2, 8),))), 70, "needle hay", "c")
    assert found.plain.startswith("● Hay")
    assert found.plain.split("\n")[1].strip() == "a needle here"
    hits = [found.plain[span.start : span.end] for span in found.spans if span.style == HIT]
    assert hits == ["Hay", "needle"]
    assert drawn(entry("Hay"), 70, "hay").plain.split("\n")[1].strip() == "in the title"
