"""Answers one step ahead: what is launched when, what belongs to the cache, and where an answer must end."""

from contextlib import closing

import pytest
import torch

from kernels.gpu.step_state import NO_ANSWER
from runtime.engine.gpu.continuation import DeviceContinuation, Stepping
from runtime.errors import DecdecError, Interrupted
from runtime.generation.cache import PrefixCache
from runtime.generation.sampler import Sampler
from runtime.generation.settings import SamplingSettings
from tests.runtime.engine.gpu.device_models import device_model
from tests.runtime.engine.gpu.tiny_steps import SMALL, off, quick_engine

PROMPT = [3, 17, 9, 30, 4]
LIVELY = SamplingSettings(1.3, 0.95, 20, 0.01, 1.2, seed=4)


class Device:
    """Answers 100 + position; what a step answers is there once it was waited for."""

    def __init__(self, start, context):
        self.start, self.launched, self.waited, self.closed = start, 0, [], []
        self.answers = torch.zeros(context + 1, dtype=torch.int32)
        self.tokens = DeviceContinuation(
            Stepping(self._launch, self.answers, start, context, self, self.closed.append)
        )

    def _launch(self):
        assert self.start + self.launched < len(self.answers) - 1
        self.launched += 1

    def mark(self):
        return self.start + self.launched

    def wait(self, mark):
        self.waited.append(mark)
        self.answers[mark] = 100 + mark


def fails(corrected):
    raise DecdecError("it failed")


def take(tokens, count):
    return [tokens.next() for _ in range(count)]


def test_a_step_is_under_way_while_a_token_is_shown():
    device = Device(3, 20)
    assert device.launched == 0
    for given in range(5):
        assert device.tokens.next() == 103 + given
        assert device.launched == given + 1
        assert device.waited[-1] == 3 + given
        assert device.tokens.accepted == given


def test_a_step_without_an_answer_ends_with_a_sentence_and_the_tokens_before_stay():
    device = Device(3, 20)
    take(device.tokens, 2)
    device.wait = lambda mark: device.answers.fill_(NO_ANSWER)
    with pytest.raises(DecdecError, match="no score of the next token is a number"):
        device.tokens.next()
    device.tokens.close()
    assert device.closed == [3 + 2]


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_the_last_token_given_is_forgotten_with_what_was_ahead(count):
    device = Device(3, 20)
    take(device.tokens, count)
    device.tokens.close()
    device.tokens.close()
    assert device.closed == [3 + max(0, count - 1)]
    with pytest.raises(ValueError, match="no room"):
        device.tokens.next()


@pytest.mark.parametrize("start", [17, 19, 20])
def test_the_last_place_is_filled_and_none_behind_it(start):
    device = Device(start, 20)
    assert take(device.tokens, 21 - start) == list(range(100 + start, 121))
    assert device.launched == 20 - start
    with pytest.raises(ValueError, match="no room for another token"):
        device.tokens.next()
    device.tokens.close()
    assert device.closed == [20]


def test_a_step_that_could_not_be_launched_can_be_asked_for_again():
    device = Device(3, 20)
    launch, failures = device._launch, [MemoryError()]

    def failing():
        if failures:
            raise failures.pop()
        launch()

    tokens = DeviceContinuation(Stepping(failing, device.answers, 3, 20, device, device.closed.append))
    with pytest.raises(MemoryError):
        tokens.next()
    assert tokens.accepted == 0
    assert take(tokens, 3) == [103, 104, 105]
    tokens.close()
    assert device.closed == [5]


@pytest.fixture(scope="module")
def engine():
    return quick_engine(device_model("llama", "rtn3", context=16, **SMALL))


@pytest.fixture(scope="module")
def plain():
    """Prompts get the base alone, as answers do."""
    return quick_engine(device_model("llama", "rtn3", context=16, **SMALL), prompt_correction=False)


@pytest.fixture
def begun(engine):
    """The engine after PROMPT, and its cache."""
    engine.truncate(0)
    cache = PrefixCache(engine)
    return cache, cache.prefill(PROMPT, lambda: None)[0]


def by_hand(engine, logits, count, settings):
    """What a sampler on the host takes, by one decode after the other."""
    chosen, sampler = [], Sampler(settings)
    for _ in range(count):
        chosen.append(sampler.pick(logits))
        logits = engine.decode(chosen[-1])
    engine.truncate(len(PROMPT))
    return chosen


@pytest.mark.parametrize("penalty", [1.0, 1.5])
def test_greedy_tokens_are_the_likeliest_of_every_step(engine, begun, penalty):
    cache, logits = begun
    settings = SamplingSettings(repetition_penalty=penalty)
    expected = by_hand(engine, logits, 8, settings)
    with closing(cache.continuation(logits, settings)) as tokens:
        for number, token in enumerate(expected):
            assert tokens.next() == token
            assert engine.position == len(PROMPT) + number
    assert engine.position == cache.used == len(PROMPT) + 7


@pytest.mark.parametrize("settings", [SamplingSettings(), LIVELY])
def test_an_answer_to_the_context_s_end_comes_again(engine, begun, settings):
    cache, logits = begun
    answers = []
    for _ in range(2):
        with closing(cache.continuation(logits, settings)) as tokens:
            answers.append(take(tokens, 12))
            assert cache.full
            with pytest.raises(ValueError, match="no room"):
                tokens.next()
        assert engine.position == engine.context_limit == 16
        assert cache.ids == PROMPT + answers[-1][:-1]
        logits, reused = cache.prefill(PROMPT, lambda: None)
        assert reused == len(PROMPT) - 1
    assert answers[0] == answers[1]
    assert len(set(answers[0])) > 2


def test_a_full_prompt_is_answered_by_one_token(engine, begun):
    cache, _ = begun
    prompt = (PROMPT * 4)[:16]
    logits, _ = cache.prefill(prompt, lambda: None)
    with closing(cache.continuation(logits, SamplingSettings())) as tokens:
        assert tokens.next() == int(logits.argmax())
        with pytest.raises(ValueError, match="no room"):
            tokens.next()
    assert cache.ids == prompt


@pytest.mark.parametrize("count", [0, 1, 2, 4])
def test_what_an_answer_leaves_is_reused_by_the_next_prompt(plain, count):
    plain.truncate(0)
    cache = PrefixCache(plain)
    logits, _ = cache.prefill(PROMPT, lambda: None)
    with closing(cache.continuation(logits, LIVELY)) as tokens:
        given = take(tokens, count)
    kept = PROMPT + given[: max(0, count - 1)]
    assert cache.ids == kept
    prompt = [*PROMPT, *given, 6]
    again, reused = cache.prefill(prompt, lambda: None)
    assert reused == len(kept)
    plain.truncate(0)
    assert off(again, plain.prefill(prompt, lambda: None).cpu()) < 2e-2


def test_a_failing_step_leaves_equal_ids_and_the_same_answer_comes_again(engine, begun, monkeypatch):
    cache, logits = begun
    with closing(cache.continuation(logits, LIVELY)) as tokens:
        expected = take(tokens, 5)
    logits, _ = cache.prefill(PROMPT, lambda: None)
    tokens = cache.continuation(logits, LIVELY)
    given = take(tokens, 2)
    with monkeypatch.context() as patch:
        patch.setattr(engine._bank.graphs, "replay", fails)
        with closing(tokens), pytest.raises(DecdecError):
            tokens.next()
    assert cache.ids == (PROMPT + given)[: len(cache.ids)]
    logits, _ = cache.prefill(PROMPT, lambda: None)
    with closing(cache.continuation(logits, LIVELY)) as again:
        assert take(again, 5) == expected


def test_a_stop_in_the_prompt_keeps_equal_ids():
    engine = quick_engine(device_model("llama", "rtn3", context=16, **SMALL), chunk=4)
    cache, calls = PrefixCache(engine), iter([None, Interrupted()])

    def check():
        if error := next(calls):
            raise error

    with pytest.raises(Interrupted):
        cache.prefill((PROMPT * 2)[:9], check)
    assert cache.ids == PROMPT[:4]
    assert cache.used == 4
