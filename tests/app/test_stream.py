"""Pacing, block splitting and following, by table."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.stream import BlockStream, Follow, Pace

TEXT = "# Hi\n\npara one\ncont\n\n- a\n\n  inside\n- b\n\n```py\nx\n\ny\n```\n|a|\n|-|\n|1|\n\nend"


def test_blocks_are_settled_when_the_next_one_has_begun():
    stream, settled = BlockStream(), []
    for end in range(len(TEXT) + 1):
        settled += stream.push(TEXT[:end])
        assert "".join(settled) + stream.tail == TEXT[:end]
    assert settled[0] == "# Hi\n\n"
    assert "- a\n\n  inside\n- b\n\n" in settled
    assert any(block.startswith("```py\nx\n\ny\n```") for block in settled)
    assert stream.tail == "end"


def test_lines_are_the_parsers_lines():
    stream = BlockStream()
    assert stream.push("a\x0bb\x1cc\u2028d\r\n\r\nsecond") == ["a\x0bb\x1cc\u2028d\r\n\r\n"]


def test_an_open_fence_stays_whole():
    stream = BlockStream()
    assert stream.push("```\n# not a heading\n\n- nor a list\n") == []


@given(st.text(alphabet="#-`>|*1. \n\tax\r\x0b\x0c\x1c\x85\u2028", max_size=60))
def test_nothing_is_lost_whatever_comes(text):
    stream, settled = BlockStream(), []
    for end in range(0, len(text) + 1, 3):
        settled += stream.push(text[:end])
    settled += stream.push(text)
    assert "".join(settled) + stream.tail == text


@pytest.mark.parametrize(("cost", "interval"), [(0.001, 0.1), (0.05, 0.2), (2.0, 1.0)])
def test_pace_adapts_to_the_cost_of_drawing(cost, interval):
    pace = Pace()
    assert pace.due(0.0)
    pace.drew(10.0, 10.0 + cost)
    assert not pace.due(10.0 + cost + interval * 0.95)
    assert pace.due(10.0 + cost + interval * 1.05)


def test_follow_holds_after_scrolling_up_and_returns_at_the_end():
    follow = Follow()
    follow.scrolled(50, 40, 50)
    assert not follow.on
    follow.scrolled(40, 45, 80)
    assert not follow.on
    follow.scrolled(45, 80, 80)
    assert follow.on


def test_a_view_that_shrinks_keeps_following():
    follow = Follow()
    follow.scrolled(50, 30, 30)
    assert follow.on
