"""Speed and counts, on a clock that the test moves."""

import pytest

from runtime.client.remote.documents import Usage
from runtime.client.remote.meter import MAX_PER_PIECE, RemoteMeter


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def written(clock, pieces, step=0.1, reasoning=False, **settings):
    """A meter that saw a piece every `step` seconds, the first after half a second."""
    meter = RemoteMeter(clock=clock, **settings)
    clock.now += 0.5
    for _ in range(pieces):
        meter.piece(reasoning)
        clock.now += step
    return meter


def test_pieces_are_tokens_until_the_server_counted(clock):
    meter = written(clock, 11)
    assert meter.stats().completion_tokens == 11
    assert meter.stats().decode_tokens_per_s == pytest.approx(10)
    meter.usage = Usage(5, 31)
    final = meter.stats(final=True)
    assert (final.completion_tokens, final.prefill_s) == (31, 0.5)
    assert final.decode_tokens_per_s == pytest.approx(30)


def test_the_next_answer_begins_with_the_tokens_in_a_piece_of_the_last(clock):
    meter = written(clock, 10)
    meter.usage = Usage(5, 30)
    assert meter.per_piece == 3
    following = written(clock, 11, piece_guess=meter.per_piece)
    assert following.stats().decode_tokens_per_s == pytest.approx(30)
    assert following.tokens == 33
    assert following.per_piece == 3


@pytest.mark.parametrize(
    ("usage", "per_piece"),
    [(Usage(5, 0), 2), (Usage(5, 3), 1), (Usage(5, 5000), MAX_PER_PIECE), (Usage(5, 5020, 0, 5000), 2)],
)
def test_what_is_learnt_of_pieces_is_kept_within_reason(clock, usage, per_piece):
    meter = written(clock, 10, piece_guess=2.0)
    meter.usage = usage
    assert meter.per_piece == per_piece


def test_reasoning_that_was_not_shown_makes_no_answer_faster(clock):
    hidden, shown = written(clock, 11), written(clock, 11, reasoning=True)
    hidden.usage = shown.usage = Usage(5, 111, 0, 100)
    assert hidden.stats(final=True).decode_tokens_per_s == pytest.approx(10)
    assert hidden.stats(final=True).completion_tokens == 111
    assert shown.stats(final=True).decode_tokens_per_s == pytest.approx(110)


@pytest.mark.parametrize(
    ("limit", "prompt", "full"), [(0, 90, False), (100, 0, False), (100, 89, False), (100, 90, True)]
)
def test_when_a_context_is_full(clock, limit, prompt, full):
    meter = written(clock, 10, limit=limit)
    meter.usage = Usage(prompt, 10)
    assert meter.full is full


def test_a_guess_is_never_more_than_the_context(clock):
    meter = written(clock, 10, limit=100, prompt_guess=95)
    assert meter.stats().context_used == 100
    meter.usage = Usage(20, 10)
    assert meter.stats().context_used == 30


def test_nothing_came(clock):
    stats = written(clock, 0, prompt_guess=7).stats(final=True)
    assert (stats.completion_tokens, stats.context_used, stats.decode_tokens_per_s) == (0, 7, 0.0)
    assert stats.prefill_s == 0.5


def test_the_speed_of_now_forgets_what_was_long_ago(clock):
    meter = written(clock, 20, step=0.1)
    for _ in range(10):
        meter.piece()
        clock.now += 0.5
    assert meter.stats().decode_tokens_per_s == pytest.approx(2)
    assert meter.stats(final=True).decode_tokens_per_s > 3
