"""Times of tokens, from reports that come when they come."""

import pytest

from app.slider import Position, Sample, TokenTimes
from app.slider.times import CAPACITY, LATELY, MIN_S, Progress
from tests.app.slider.conftest import stats

A, B, C = Position(5.0), Position(10.0), Position(20.0)


def written(times, runs, start=0.0, first=True):
    """Reports every 0.4 s: (position, seconds, ms a token) after another."""
    count, at = 0.0, start
    times.push(0, runs[0][0], at, first)
    for position, seconds, ms in runs:
        times.push(count, position, at, False)
        for _ in range(round(seconds / 0.4)):
            at += 0.4
            count += 400 / ms
            times.push(count, position, at, False)
    return at


def test_a_sample_is_time_by_tokens():
    times = TokenTimes()
    times.push(3, A, 10.0, True)
    times.push(13, A, 10.5, False)
    times.push(33, A, 11.5, False)
    assert list(times.samples) == [Sample(50.0, A, first=True), Sample(50.0, A)]


def test_spans_too_short_to_tell_are_joined():
    times = TokenTimes()
    times.push(0, A, 0.0, True)
    for step in range(1, 9):
        times.push(step, A, step * 0.1, False)
    assert [sample.ms for sample in times.samples] == pytest.approx([100.0, 100.0])
    assert MIN_S == 0.3


def test_a_span_in_which_the_slider_moved_is_left_out():
    times = TokenTimes()
    times.push(0, A, 0.0, True)
    times.push(10, A, 1.0, False)
    times.push(20, B, 9.0, False)
    times.push(30, B, 10.5, False)
    assert list(times.samples) == [Sample(100.0, A, first=True), Sample(150.0, B)]


def test_the_pause_between_two_answers_is_no_token():
    times = TokenTimes()
    end = written(times, [(A, 2.0, 100)])
    written(times, [(A, 2.0, 100)], start=end + 60)
    assert {round(sample.ms) for sample in times.samples} == {100}
    assert [sample.first for sample in times.samples].count(True) == 2


def test_figures_are_of_the_newest_answer_alone():
    times = TokenTimes()
    end = written(times, [(A, 4, 100), (B, 4, 120)])
    times.push(0, B, end + 9, True)
    assert (times.now_ms, times.before) == (None, None)
    written(times, [(B, 0.8, 50)], start=end + 9)
    assert (times.now_ms, times.before) == (None, None)
    written(times, [(B, 4, 50)], start=end + 20)
    assert times.now_ms == pytest.approx(50)
    assert times.before is None
    assert len(times.samples) > 30


def test_what_a_move_cost():
    times = TokenTimes()
    assert (times.now_ms, times.before) == (None, None)
    written(times, [(A, 4, 100), (B, 0.8, 500), (C, 4, 120)])
    assert times.now_ms == pytest.approx(120)
    assert times.before is not None
    position, ms = times.before
    assert (position, round(ms)) == (A, 100)


def test_moving_back_compares_with_the_position_that_was_left():
    times = TokenTimes()
    written(times, [(A, 4, 100), (B, 4, 120), (A, 4, 110)])
    assert times.before == (B, pytest.approx(120))
    assert times.now_ms == pytest.approx(110)


def test_one_hiccup_does_not_bend_the_figure_and_old_samples_do_not_count():
    times = TokenTimes()
    written(times, [(A, LATELY * 0.4, 100), (A, 0.4, 5000), (A, LATELY * 0.4, 140)])
    assert times.now_ms == pytest.approx(140)


def test_the_history_is_bounded_and_can_be_forgotten():
    times = TokenTimes()
    written(times, [(A, 2 * CAPACITY * 0.4, 100)])
    assert len(times.samples) == CAPACITY
    times.clear()
    assert not times.samples


def test_progress_tells_new_tokens_from_mere_answers_to_a_move():
    progress = Progress()
    seen = [
        progress.push(stats(0, tokens=0)),
        progress.push(stats(0, tokens=4)),
        progress.push(stats(0, tokens=9)),
        progress.push(stats(5, tokens=9)),
        progress.push(stats(5, tokens=12, prompt=80)),
        progress.push(stats(5, tokens=3, prompt=80)),
        progress.push(stats(5, tokens=0, prompt=80)),
    ]
    assert seen == [(0, False), (4, False), (5, False), (0, False), (12, True), (3, True), (0, False)]
