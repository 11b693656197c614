"""What is typed meets what was written, in every script."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.history.excerpt import excerpt
from app.history.words import phrases, says, spans, tokens


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Café GRÜẞE, Straße", "cafe grusse strasse"),
        ("my_func(x)->y", "my func x y"),
        ("東京の天気", "東 京 の 天 気"),
        ("GPUは速い", "gpu は 速 い"),
        ("ภาษาไทย", "ภ า ษ า ไ ท ย"),
        ("हिन्दी में", "हिन्दी में"),
        ("שָׁלוֹם עולם", "שלום עולם"),
        ("مُحَمَّد", "محمد"),
        ("İstanbul ΣΊΣΥΦΟΣ", "istanbul σισυφοσ"),
        ("soft\u00adhyphen zero\u200bwidth", "softhyphen zerowidth"),
        ("👩🏽‍🚀!", "👩 🚀"),
        ("ｆｕｌｌ ﬁn", "full fin"),
        ("a\x00b\x1b[0m", "a b 0m"),
        ("?!…", ""),
    ],
)
def test_one_form_for_every_script(text, found):
    assert tokens(text) == found


@pytest.mark.parametrize(
    ("typed", "wanted"),
    [
        ("", ()),
        ("  ++ ?", ()),
        ("Café", (("cafe",),)),
        ("one two one", (("one",), ("two",))),
        ('"one two" three', (("one", "two"), ("three",))),
        ('"not closed yet', (("not", "closed", "yet"),)),
        ("c++ my_func", (("c",), ("my", "func"))),
        ("東京", (("東", "京"),)),
    ],
)
def test_what_is_typed_becomes_phrases(typed, wanted):
    assert phrases(typed) == wanted


@pytest.mark.parametrize(
    ("text", "typed", "seen"),
    [
        ("die Straße hier", "strasse", ["Straße"]),
        ("die Straße hier", "stra", ["Stra"]),
        ("CAFÉ, cafe\u0301", "cafe", ["CAFÉ", "cafe"]),
        ("東京都庁", "京都", ["京都"]),
        ("a my_func b", "my_func", ["my_func"]),
        ("one  two", '"one two"', ["one  two"]),
        ("banana", "ana", []),
        ("abc abcd", "abc abcd", ["abc", "abcd"]),
    ],
)
def test_hits_are_where_they_stand(text, typed, seen):
    assert [text[start:end] for start, end in spans(text, phrases(typed))] == seen


# NFKD may put accents of neighbouring characters into another order, which only whole texts show.
PLAIN = st.text(st.characters(exclude_categories=["Cs", "Mn", "Mc", "Me"]), max_size=30)


@given(PLAIN, PLAIN)
def test_marks_and_search_agree(text, typed):
    for phrase in phrases(typed):
        assert bool(spans(text, (phrase,))) == says(text, phrase)


@given(PLAIN)
def test_every_word_of_a_text_is_found_in_it(text):
    assert all(says(text, phrase) for phrase in phrases(text.replace('"', " ")))


@given(st.text(max_size=60), st.text(max_size=10))
def test_an_excerpt_is_one_safe_line_with_its_hits_inside(text, typed):
    found = excerpt(text.encode("utf-8", "ignore").decode(), phrases(typed))
    if found:
        assert "\n" not in found.text
        assert "\x1b" not in found.text
        assert found.spans
        assert all(0 <= start < end <= len(found.text) for start, end in found.spans)


def test_an_excerpt_begins_a_little_before_the_hit():
    found = excerpt("word " * 100 + "the needle here " + "word " * 200, phrases("needle"))
    start, end = found.spans[0]
    assert found.text[start:end] == "needle"
    assert found.text.startswith("…word ")
    assert 0 < start < 30
    assert len(found.text) < 500
