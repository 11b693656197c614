"""Characters as readers count them, by Unicode's rules."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from app.graphemes import at_cell, breaks, graphemes, left_of, right_of, start_of

FAMILY, FLAG, THUMB, KEY, ACCENT, DEVANAGARI = "👨‍👩‍👧", "🇩🇪", "👍🏽", "1️⃣", "e\u0301", "क्षि"
WHOLE = [FAMILY, FLAG, THUMB, KEY, ACCENT, DEVANAGARI, "東", "a", " "]
TEXTS = st.lists(st.sampled_from([*WHOLE, "\u200d", "\u0301", "b", "  "]), max_size=12).map("".join)


@pytest.mark.parametrize("one", WHOLE)
def test_one_character_is_one_step_and_one_deletion(one):
    text = f"x{one}y"
    assert graphemes(text) == ["x", one, "y"]
    assert (right_of(text, 1), left_of(text, 1 + len(one))) == (1 + len(one), 1)
    assert {start_of(text, at) for at in range(1, 1 + len(one))} == {1}


def test_flags_are_paired_from_the_first():
    assert graphemes("🇩🇪🇫🇷🇪") == ["🇩🇪", "🇫🇷", "🇪"]
    assert [left_of("🇩🇪🇫🇷", at) for at in (1, 2, 3, 4)] == [0, 0, 2, 2]


def test_ends_of_a_text():
    for text in ("", "ab", FAMILY):
        assert (left_of(text, 0), right_of(text, len(text)), start_of(text, len(text))) == (
            0,
            len(text),
            len(text),
        )


@given(TEXTS)
def test_steps_to_the_right_visit_what_steps_to_the_left_do(text):
    there, back = [0], [len(text)]
    while there[-1] < len(text):
        there.append(right_of(text, there[-1]))
    while back[-1] > 0:
        back.append(left_of(text, back[-1]))
    assert there == back[::-1]
    assert [text[a:b] for a, b in itertools.pairwise(there)] == graphemes(text)
    assert [at for at in range(len(text) + 1) if start_of(text, at) == at] == there


def test_a_cell_belongs_to_the_character_that_covers_it():
    text = f"a{FAMILY}東b"
    edges = [0, 1, 1 + len(FAMILY), 2 + len(FAMILY)]
    assert [at_cell(text, cell) for cell in range(8)] == [
        edges[0], edges[1], edges[1], edges[2], edges[2], edges[3], len(text), len(text),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("one two three", 8, ["one two ", "three"]),
        ("東京" * 4, 5, ["東京", "東京", "東京", "東京"]),
        (FAMILY * 3, 5, [FAMILY * 2, FAMILY]),
        ("abc" + FAMILY, 4, ["abc", FAMILY]),
        (FLAG * 3, 3, [FLAG] * 3),
        ("ab " + "x" * 7, 4, ["ab ", "xxxx", "xxx"]),
        ("東", 1, ["東"]),
        ("anything", 0, ["anything"]),
        ("", 5, [""]),
    ],
)
def test_lines_break_before_words_else_between_characters(text, width, lines):
    ends = breaks(text, width)
    assert [text[a:b] for a, b in zip([0, *ends], [*ends, len(text)], strict=True)] == lines


def test_tabs_are_as_wide_as_they_are_drawn():
    assert breaks("a\tb", 5, [3]) == []
    assert breaks("a\tb", 4, [3]) == [2]


@given(st.lists(st.sampled_from([*WHOLE, "b", "  "]), max_size=12).map("".join), st.integers(2, 9))
def test_no_line_is_too_long_and_no_character_broken(text, width):
    ends = breaks(text, width)
    lines = [text[a:b] for a, b in zip([0, *ends], [*ends, len(text)], strict=True)]
    assert [part for line in lines for part in graphemes(line)] == graphemes(text)
    assert all(cell_len(line) <= width or len(graphemes(line)) == 1 for line in lines)
