"""Pacing, block splitting and following, by table."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.code_blocks import code_blocks
from app.stream import PART_ITEMS, PART_LINES, BlockStream, Follow, Pace, Settled

TEXT = "# Hi\n\npara one\ncont\n\n- a\n\n  inside\n- b\n\n```py\nx\n\ny\n```\n|a|\n|-|\n|1|\n\nend"


def test_blocks_are_settled_when_the_next_one_has_begun():
    stream, settled = BlockStream(), []
    for end in range(len(TEXT) + 1):
        settled += [block.source for block in stream.push(TEXT[:end])]
        assert "".join(settled) + stream.tail == TEXT[:end]
    assert settled[0] == "# Hi\n\n"
    assert "- a\n\n  inside\n- b\n\n" in settled
    assert any(block.startswith("```py\nx\n\ny\n```") for block in settled)
    assert stream.tail == "end"


def test_lines_are_the_parsers_lines():
    stream = BlockStream()
    assert stream.push("a\x0bb\x1cc\u2028d\r\n\r\nsecond") == [Settled("a\x0bb\x1cc\u2028d\r\n\r\n")]


def test_an_open_fence_stays_whole():
    stream = BlockStream()
    assert stream.push("```\n# not a heading\n\n- nor a list\n") == []


@given(st.text(alphabet="#-`>|*1. \n\tax\r\x0b\x0c\x1c\x85\u2028", max_size=60))
def test_nothing_is_lost_whatever_comes(text):
    stream, settled = BlockStream(), []
    for end in range(0, len(text) + 1, 3):
        settled += stream.push(text[:end])
    settled += stream.push(text)
    assert "".join(block.source for block in settled) + stream.tail == text


@pytest.mark.parametrize("step", [1, 7, 10_000])
def test_of_a_long_fence_the_beginning_is_settled_as_fences_of_its_own(step):
    code = "".join(f"line {at}\n" for at in range(500))
    text = f"Intro\n\n~~~py\n{code}~~~\n\nend"
    stream, settled = BlockStream(), []
    for end in range(step, len(text) + step, step):
        settled += stream.push(text[:end])
        if step == 1:
            assert stream.tail.count("\n") <= 2 * PART_LINES + 2
    while more := stream.push(text):
        settled += more
    assert stream.tail == "end"
    blocks = code_blocks("".join(block.source for block in settled))
    assert {block.language for block in blocks} == {"py"}
    assert "".join(block.text for block in blocks) == code
    assert [block.joined for block in settled[1:-1]] == [True] * (len(settled) - 2)
    assert not settled[-1].joined


def test_of_a_long_list_the_beginning_is_settled_and_numbers_go_on():
    text = "".join(f"{at}. item\n   more\n" for at in range(1, 301))
    stream, settled = BlockStream(), []
    for end in range(0, len(text) + 1, 9):
        settled += stream.push(text[:end])
    assert "".join(block.source for block in settled) + stream.tail == text[:end]
    assert all(block.joined and block.source.count("item") == PART_ITEMS for block in settled)
    assert settled[1].source.startswith(f"{PART_ITEMS + 1}. item")
    assert stream.tail.count("item") <= 2 * PART_ITEMS + 1


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


def test_one_line_up_from_the_end_holds_and_one_line_down_follows_again():
    follow = Follow()
    follow.scrolled(50, 49, 50)
    assert not follow.on
    follow.scrolled(49, 49.5, 50)
    assert follow.on


def test_a_view_that_shrinks_keeps_following():
    follow = Follow()
    follow.scrolled(50, 30, 30)
    assert follow.on
