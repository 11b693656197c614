"""Time to the first token, moves of the slider, and whether the same moves give the same tokens."""

import itertools

import pytest

from runtime.bench.decode import answers
from runtime.bench.decode.step_rows import POSITION, Subject
from runtime.bench.decode.stepping import answer_seconds, driven_tokens_per_s
from tests.fakes.step_engine import FakeStepEngine

REPLY = list(range(3, 40))


def subject(replies):
    return Subject("M", "awq4", FakeStepEngine(replies))


def test_every_token_has_its_own_position_of_the_slider():
    asked = subject(itertools.repeat(REPLY))
    rows = list(answers.move_rows(asked, 20))
    assert [(row["slider"], row["positions"], row["same tokens"]) for row in rows] == [
        ("at rest", 1, None),
        ("moved", len(set(answers.schedule(20))), None),
        ("moved again", len(set(answers.schedule(20))), True),
    ]
    moves = [pct for _, pct, _ in asked.engine.moves]
    assert moves[:20] == [10.0] * 20
    assert moves[20:40] == moves[40:] == answers.schedule(20)
    assert all(0 <= pct <= 20 for pct in answers.schedule())
    assert all(row["median ms"] <= row["99 % ms"] <= row["longest ms"] for row in rows)


def test_other_tokens_under_the_same_moves_are_told():
    replies = itertools.chain([REPLY, REPLY, REPLY[::-1]])
    assert [row["same tokens"] for row in answers.move_rows(subject(replies), 10)] == [None, None, False]


def test_prompts_are_read_from_an_empty_cache():
    asked = subject(itertools.repeat(REPLY))
    rows = list(answers.first_token_rows(asked, corrected=True, prompts=(8, 32)))
    assert [(row["prompt"], row["corrected"]) for row in rows] == [(8, True), (32, True)]
    assert asked.engine.prefilled == [8] * 4 + [32] * 4
    assert asked.engine.position == 32
    assert all(row["tokens/s"] == pytest.approx(1e3 * row["prompt"] / row["ms"]) for row in rows)


@pytest.mark.parametrize("ahead", [False, True])
def test_an_answer_begins_behind_its_prompt_and_is_timed_token_by_token(ahead):
    engine = FakeStepEngine(itertools.repeat(REPLY), ahead=ahead)
    heard = []
    tokens, seconds = answer_seconds(engine, POSITION, 6, heard.append)
    assert (tokens, len(seconds), heard) == (REPLY[:6], 6, list(range(6)))
    assert engine.position == POSITION + 5


def test_speed_counts_all_tokens_but_the_first():
    engine = FakeStepEngine(itertools.repeat(REPLY), delay_s=0.01)
    assert 50 < driven_tokens_per_s(engine, 8, 10) < 100
