"""Completions and conversations over a scripted engine with a real token history."""

from types import SimpleNamespace

import pytest

from runtime.errors import Interrupted
from runtime.progress import JobContext
from runtime.protocol import Loaded, Message, Sampling
from runtime.tasks.asking import Chatter, Completer
from runtime.text import Tokenizer
from tests.fakes.fake_engine import FakeEngine
from tests.fakes.small_tokenizers import write_byte_level


@pytest.fixture
def make(tmp_path):
    write_byte_level(tmp_path)
    tokenizer = Tokenizer.from_folder(tmp_path)

    def build(*replies, limit=512):
        encoded = iter([tokenizer.encode(reply) for reply in replies])
        engine = FakeEngine(encoded, tokenizer.vocab_size, tokenizer.control["<|im_end|>"], limit)
        loaded = Loaded("m", "awq4", "cpu", limit, 1)
        return SimpleNamespace(engine=engine, loaded=loaded, folder=tmp_path)

    return build


def test_a_completion_ends_at_a_stop_and_shares_its_beginning_with_the_next(make):
    found = make(" So it is.\nQ: again", " No")
    completer = Completer(found, JobContext.silent())
    first = completer.complete("Say yes.\n\nQ: a", ["\nQ:"], 64)
    assert (first.text, first.finish_reason) == (" So it is.", "stop")
    second = completer.complete("Say yes.\n\nQ: b", ["\nQ:"], 64)
    assert (second.text, second.finish_reason) == (" No", "stop")
    assert found.engine.prefilled[1] < found.engine.prefilled[0] / 2


def test_a_completion_has_a_length_and_a_context(make):
    completer = Completer(make("abcdefgh", limit=48), JobContext.silent())
    answered = completer.complete("x", [], 3)
    assert (answered.tokens, answered.finish_reason) == (3, "length")
    assert completer.complete("words " * 40, [], 8).finish_reason is None


def test_a_stopped_job_stops_an_answer(make):
    with pytest.raises(Interrupted):
        Completer(make("abc"), JobContext("x", print, lambda: True)).complete("x", [], 3)
    chatter = Chatter(make("abc"), JobContext("x", print, lambda: True))
    with pytest.raises(Interrupted):
        chatter.answer([Message("user", "hi")], Sampling(temperature=0), 8)


def test_a_conversation_is_answered_in_the_template(make):
    answered = Chatter(make("Hello!"), JobContext.silent()).answer([Message("user", "hi")], Sampling(), 32)
    assert (answered.text, answered.finish_reason) == ("Hello!", "stop")
