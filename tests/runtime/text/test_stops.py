from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.text import StopMatcher


def run(stops, pieces):
    matcher = StopMatcher(stops)
    shown = []
    for piece in pieces:
        shown.append(matcher.push(piece))
        if matcher.hit:
            break
    return "".join(shown) + matcher.finish(), matcher.hit


def reference(stops, text):
    """Cut where the first complete stop string shows, reading one character after the other."""
    for end in range(len(text) + 1):
        starts = [text[:end].find(stop) for stop in stops if stop in text[:end]]
        if starts:
            return text[: min(starts)], True
    return text, False


@pytest.mark.parametrize(
    ("stops", "pieces", "shown"),
    [
        (["END"], ["a", "E", "N", "D", "b"], ("a", True)),
        (["END"], ["aEN", "x"], ("aENx", False)),
        (["END"], ["aE", "EN", "D"], ("aE", True)),
        (["END"], ["the E", "N"], ("the EN", False)),
        (["\nUser:"], ["hi\n", "User", ":"], ("hi", True)),
        ([], ["any", "thing"], ("anything", False)),
        ([""], ["x"], ("x", False)),
    ],
)
def test_table(stops, pieces, shown):
    assert run(stops, pieces) == shown


@given(
    st.lists(st.text("ab", min_size=1, max_size=4), min_size=1, max_size=3),
    st.lists(st.text("abc", max_size=1), max_size=40),
)
def test_equals_the_definition_character_by_character(stops, pieces):
    assert run(stops, pieces) == reference(stops, "".join(pieces))


@given(
    st.lists(st.text("ab", min_size=1, max_size=4), min_size=1, max_size=3),
    st.lists(st.text("abc", max_size=5), max_size=20),
)
def test_nothing_is_lost_and_nothing_leaks_in_any_cut(stops, pieces):
    shown, hit = run(stops, pieces)
    assert "".join(pieces).startswith(shown)
    assert not any(stop in shown for stop in stops)
    assert hit or shown == "".join(pieces)


def test_text_is_shown_as_soon_as_it_is_certain():
    matcher = StopMatcher(["<stop>"])
    assert [matcher.push(p) for p in ("a<", "b", "<st", "x")] == ["a", "<b", "", "<stx"]
