"""Two answers to one question: what is sent when, and what is known of them."""

import pytest

from app.comparison import INTERRUPTED, Comparison, Context, usual_positions
from app.slider import Position, SliderState
from app.slider.position import LOSSLESS
from runtime.errors import DecdecError
from runtime.protocol.commands import Generate, Message, Sampling, SetSlowdown, Stop
from runtime.protocol.events import Done, Failed, KChunk, Loaded, SlowdownPoint, Stats, Token

A, B, HOME = Position(), Position(5.0), SetSlowdown(7.5)
BEFORE = (Message("system", "Brief."), Message("user", "hi"), Message("assistant", "Hello."))


def report(tokens=10, target=0.0):
    return Stats(70.0, 0.1, 5, 0, tokens, 15, 2048, target, 1.0, KChunk(1), 99)


def done(text="", reason="stop"):
    return Done("generate", {"text": text, "finish_reason": reason})


@pytest.fixture
def comparison():
    return Comparison(Context(BEFORE, Sampling(seed=7), 50), (A, B), lambda: HOME)


def written(comparison, *texts):
    """Both sides get their answers; gives what was sent after each."""
    sent = []
    for text in texts:
        comparison.push(Token(text, 1))
        comparison.push(report(target=comparison.running.position.pct))
        sent.append(comparison.push(done(text)))
    return sent


def test_one_after_the_other_and_the_slider_moves_only_between_them(comparison):
    question = (*BEFORE, Message("user", "q?"))
    assert comparison.begin("q?") == [SetSlowdown(0.0), Generate(question, Sampling(seed=7), 50)]
    assert comparison.push(Token("One", 1)) == []
    assert comparison.push(report()) == []
    assert comparison.push(done("One.")) == [SetSlowdown(5.0), Generate(question, Sampling(seed=7), 50)]
    comparison.push(Token("Two", 1))
    assert comparison.push(done("Two.")) == [HOME]
    assert [comparison.answer(side).text for side in (0, 1)] == ["One.", "Two."]
    assert comparison.running is None


def test_the_last_question_again_is_a_variant_and_any_other_is_new():
    context = Context(BEFORE, Sampling(seed=7), 50, "hi", BEFORE[:1])
    comparison = Comparison(context, (A, B), lambda: HOME)
    assert comparison.begin("hi")[1].messages == (BEFORE[0], Message("user", "hi"))
    assert comparison.variant
    written(comparison, "One.", "Two.")
    assert comparison.keepable == [0, 1]
    assert comparison.begin("other")[1].messages == (*BEFORE, Message("user", "other"))
    assert not comparison.variant
    assert comparison.keepable == []


def test_lossless_is_a_position_like_another():
    comparison = Comparison(Context(), (A, LOSSLESS), lambda: HOME)
    comparison.begin("q")
    assert comparison.push(done("x"))[0] == SetSlowdown(20.0, lossless=True)


def test_both_have_one_seed_also_where_none_was_set():
    seeds = []
    for _ in range(2):
        comparison = Comparison(Context(), (A, B), lambda: HOME)
        first, second = comparison.begin("q")[1], comparison.push(done("x"))[1]
        assert first == second
        assert first.sampling.seed is not None
        seeds.append(first.sampling.seed)
    assert seeds[0] != seeds[1]


def test_figures_belong_to_the_answer_and_not_to_the_move_before_it(comparison):
    comparison.begin("q")
    comparison.push(report(tokens=99))
    assert comparison.answer(0).stats is None
    comparison.push(Token("x", 1))
    comparison.push(report(tokens=1))
    assert comparison.answer(0).stats.completion_tokens == 1


@pytest.mark.parametrize("late", [False, True])
def test_a_stop_ends_all_and_the_slider_goes_home_when_the_engine_is_done(comparison, late):
    comparison.begin("q")
    if late:
        written(comparison, "One.")
    comparison.push(Token("par", 1))
    assert comparison.stop() == [Stop()]
    assert comparison.stop() == []
    assert comparison.push(Token("t", 2)) == []
    assert comparison.push(done("part", "stopped")) == [HOME]
    answer = comparison.answer(1 if late else 0)
    assert (answer.text, answer.ended, answer.whole) == ("part", True, False)
    assert comparison.stop() == []


def test_a_stop_before_the_answer_began(comparison):
    comparison.begin("q")
    comparison.stop()
    assert comparison.push(Failed("generate", "Interrupted", code=INTERRUPTED)) == [HOME]
    assert (comparison.answer(0).failure, comparison.answer(0).reason) == ("", "stopped")


def test_a_failure_is_told_and_the_slider_goes_home(comparison):
    comparison.begin("q")
    assert comparison.push(Failed("generate", "It failed", "no memory", "close something")) == [HOME]
    assert comparison.answer(0).failure == "It failed: no memory. Close something."
    assert comparison.running is None
    assert not comparison.can_keep(0)


def test_a_crash_sends_nothing_for_the_next_engine_is_told_by_the_chat(comparison):
    comparison.begin("q")
    comparison.push(Token("par", 1))
    assert comparison.push(Failed("worker", "The engine's process ended")) == []
    assert comparison.running is None
    assert comparison.push(done("old")) == []
    assert comparison.answer(0).text == "par"
    assert comparison.begin("q")[0] == SetSlowdown(0.0)


def test_a_position_the_engine_refuses_is_not_said_to_be_compared(comparison):
    comparison.begin("q")
    assert comparison.push(Failed("set_slowdown", "The slider cannot move", "not tuned")) == [Stop()]
    assert comparison.push(done("x", "stopped")) == [HOME]
    assert "cannot move" in comparison.answer(0).failure
    assert comparison.answer(1) is None


def test_other_jobs_and_events_without_an_answer_are_none_of_its_business(comparison):
    assert comparison.push(done("x")) == []
    comparison.begin("q")
    assert comparison.push(Done("tune")) == []
    assert comparison.push(Failed("tune", "no")) == []
    assert comparison.running is not None


@pytest.mark.parametrize(
    ("question", "sides", "why"),
    [(" \n", (A, B), "no question"), ("q", (A, A), "same position")],
)
def test_what_cannot_be_compared_is_told(question, sides, why):
    comparison = Comparison(Context(), sides, lambda: HOME)
    with pytest.raises(DecdecError, match=why):
        comparison.begin(question)
    assert comparison.running is None


def test_while_it_runs_neither_question_nor_positions_change(comparison):
    comparison.begin("q")
    with pytest.raises(DecdecError, match="still being written"):
        comparison.begin("other")
    assert not comparison.move(1, LOSSLESS)
    assert comparison.sides == [A, B]


def test_only_what_is_missing_is_written_again(comparison):
    comparison.begin("q")
    written(comparison, "One.", "Two.")
    assert comparison.begin("q") == []
    assert comparison.move(1, Position(20.0))
    assert not comparison.move(1, Position(20.0))
    assert comparison.answer(1) is None
    assert comparison.begin("q")[0] == SetSlowdown(20.0)
    written(comparison, "Three.")
    comparison.move(1, B)
    assert comparison.answer(1).text == "Two."
    assert comparison.begin("another")[0] == SetSlowdown(0.0)
    assert comparison.answer(1) is None


def test_a_stopped_answer_is_written_from_its_beginning(comparison):
    comparison.begin("q")
    comparison.push(Token("par", 1))
    comparison.stop()
    comparison.push(done("par", "stopped"))
    comparison.begin("q")
    assert comparison.answer(0).text == ""


@pytest.mark.parametrize(
    ("a", "b", "over", "difference", "same"),
    [
        ("Paris is big", "Paris has", False, 6, False),
        ("Paris is big", "Paris", False, None, False),
        ("Paris is big", "Paris", True, 5, False),
        ("Paris", "Paris", True, None, True),
        ("Paris", "Paris", False, None, False),
        ("Paris", "", True, None, False),
        ("x", "y", False, 0, False),
    ],
)
def test_where_the_texts_part(comparison, a, b, over, difference, same):
    comparison.begin("q")
    written(comparison, a)
    comparison.push(Token(b, 1))
    if over:
        comparison.push(done(b))
    assert (comparison.difference, comparison.same) == (difference, same)


def test_an_answer_can_be_kept_when_it_is_over(comparison):
    assert not comparison.can_keep(0)
    comparison.begin("q")
    comparison.push(Token("One", 1))
    assert not comparison.can_keep(0)
    comparison.push(done("One."))
    assert comparison.can_keep(0)
    comparison.push(Token("Two", 1))
    assert not comparison.can_keep(1)


@pytest.mark.parametrize(
    ("target", "lossless", "positions"),
    [
        (Position(5.0), True, (A, Position(5.0))),
        (A, True, (A, LOSSLESS)),
        (A, False, (A, Position(20.0))),
        (LOSSLESS, True, (A, LOSSLESS)),
    ],
)
def test_the_usual_positions(target, lossless, positions):
    slider = SliderState(target)
    slider.loaded(Loaded("m", "rtn4", "cpu", 64, 1, (SlowdownPoint(0.0, KChunk(1)),), lossless=lossless))
    assert usual_positions(slider) == positions
