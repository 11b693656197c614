"""The token history equals the cache however an answer ends, for engines with and without a step ahead."""

from contextlib import closing
from itertools import repeat

import pytest

from runtime.errors import DecdecError, Interrupted
from runtime.generation.cache import PrefixCache
from runtime.generation.settings import SamplingSettings
from tests.fakes.fake_engine import FakeEngine

PROMPT, REPLY, END = [1, 2, 3, 4, 5], [10, 11, 12, 13, 14, 15], 0


@pytest.fixture(params=[False, True], ids=["step by step", "computed ahead"])
def engine(request):
    return FakeEngine(repeat(REPLY), 32, END, 9, ahead=request.param)


def begun(engine):
    cache = PrefixCache(engine)
    logits, _ = cache.prefill(PROMPT, lambda: None)
    return cache, cache.continuation(logits, SamplingSettings())


def take(tokens, count):
    return [tokens.next() for _ in range(count)]


@pytest.mark.parametrize("count", [0, 1, 2, 4])
def test_the_last_token_given_is_not_in_the_cache(engine, count):
    cache, tokens = begun(engine)
    with closing(tokens):
        given = take(tokens, count)
    assert given == REPLY[:count]
    assert engine.history == cache.ids == PROMPT + given[: max(0, count - 1)]
    tokens.close()
    assert engine.history == cache.ids


def test_a_full_context_is_filled_and_nothing_is_computed_beyond_it(engine):
    cache, tokens = begun(engine)
    while not cache.full:
        last = tokens.next()
    tokens.close()
    # The fake fails where more is appended; the token given last has no place.
    assert engine.history == cache.ids == PROMPT + REPLY[:4]
    assert last == REPLY[4]


def test_an_answer_that_is_left_leaves_what_the_next_prompt_may_reuse(engine):
    cache, tokens = begun(engine)
    given = take(tokens, 3)
    tokens.close()
    _, reused = cache.prefill([*PROMPT, *given, 6], lambda: None)
    assert reused == len(PROMPT) + 2
    assert engine.history == cache.ids == [*PROMPT, *given, 6]


@pytest.mark.parametrize("fail_at", [6, 7, 8])
def test_a_failing_step_leaves_equal_ids_and_the_same_answer_comes_again(engine, fail_at):
    cache, tokens = begun(engine)
    engine.fail_at, engine.failure = fail_at, DecdecError("it failed")
    with closing(tokens), pytest.raises(DecdecError):
        take(tokens, 4)
    assert engine.history == cache.ids
    assert cache.ids == (PROMPT + REPLY)[: len(cache.ids)]
    logits, reused = cache.prefill(PROMPT, lambda: None)
    assert reused == len(PROMPT) - 1
    with closing(cache.continuation(logits, SamplingSettings())) as again:
        assert take(again, 4) == REPLY[:4]


def test_a_stop_in_the_prompt_keeps_equal_ids(engine):
    cache = PrefixCache(engine)
    calls = iter([None, Interrupted()])

    def check():
        if error := next(calls):
            raise error

    engine.context_limit = 64
    with pytest.raises(Interrupted):
        cache.prefill(list(range(1, 31)), check)
    assert engine.history == cache.ids == list(range(1, 17))
    cache.clear()
    assert engine.history == cache.ids == []
