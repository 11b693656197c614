"""Fitting a conversation: the earliest question that fits, found without rendering all again and again."""

import random

import pytest

from runtime.errors import DecdecError
from runtime.generation.context import QUICKLY_CUT, ContextWindow
from runtime.protocol import Message

LIMIT = 100
# A quarter of the context for the answer, and a quarter that is freed.
WANTED = LIMIT // 2


class Prompts:
    """A token for each character, a quarter of them certain; `rendered`: lengths of all that was built."""

    def __init__(self):
        self.rendered = []

    def least_tokens(self, text):
        return len(text) / 4

    def build(self, messages):
        length = sum(len(message.content) for message in messages)
        self.rendered.append(length)
        return type("Prompt", (), {"ids": tuple(range(length))})()


def conversation(lengths):
    """Questions and answers of these lengths, the last one a question."""
    return [
        Message("user" if at % 2 == 0 else "assistant", "x" * length) for at, length in enumerate(lengths)
    ]


def earliest(messages):
    """How many must go, by trying them all."""
    starts = [at for at, message in enumerate(messages) if message.role == "user" and at]
    sizes = [sum(len(message.content) for message in messages[start:]) for start in starts]
    return next((start for start, size in zip(starts, sizes, strict=True) if size <= WANTED), starts[-1])


@pytest.mark.parametrize("count", [1, 3, 5, 41, 1001])
def test_the_earliest_question_that_fits_begins_the_prompt(count):
    draw = random.Random(count)
    for _ in range(30):
        messages = conversation([draw.randint(1, 12) for _ in range(count)])
        whole = sum(len(message.content) for message in messages)
        prompts = Prompts()
        fitted = ContextWindow(prompts, LIMIT).fit(messages)
        assert fitted.dropped == (earliest(messages) if whole + LIMIT // 4 > LIMIT else 0)
        assert sum(prompts.rendered) <= min(whole, QUICKLY_CUT * LIMIT) + 20 * LIMIT


def test_a_last_question_longer_than_wanted_stays_alone():
    fitted = ContextWindow(Prompts(), LIMIT).fit(conversation([40, 40, 80]))
    assert (fitted.dropped, len(fitted.prompt.ids)) == (2, 80)


def test_a_last_question_that_never_fits_is_refused():
    with pytest.raises(DecdecError, match="it has 120 tokens"):
        ContextWindow(Prompts(), LIMIT).fit(conversation([40, 40, 120]))


@pytest.mark.parametrize("before", [[], [5, 5], [5, 1_000_000, 5, 5]])
def test_a_question_that_no_tokenizer_makes_short_enough_is_refused_unread(before):
    prompts = Prompts()
    with pytest.raises(DecdecError, match=r"it has at least 25000\d tokens and the context holds 100"):
        ContextWindow(prompts, LIMIT).fit(conversation([*before, 1_000_000]))
    with pytest.raises(DecdecError, match="with the system prompt it has at least 250002 tokens"):
        ContextWindow(prompts, LIMIT).fit([Message("system", "x" * 1_000_000), *conversation([*before, 5])])
    assert prompts.rendered == []


def test_messages_that_no_tokenizer_makes_short_enough_go_unread():
    prompts = Prompts()
    fitted = ContextWindow(prompts, LIMIT).fit(conversation([5, 5, 1_000_000, 5, 10, 10, 20]))
    assert (fitted.dropped, len(fitted.prompt.ids)) == (4, 40)
    assert prompts.rendered == [40]


def test_a_short_question_below_a_long_system_prompt_is_read():
    messages = [Message("system", "x" * 60), *conversation([5, 5, 10])]
    assert len(ContextWindow(Prompts(), LIMIT).fit(messages).prompt.ids) == 70


def test_an_ordinary_conversation_is_not_weighed(monkeypatch):
    prompts = Prompts()
    monkeypatch.setattr(prompts, "least_tokens", None)
    assert len(ContextWindow(prompts, LIMIT).fit(conversation([5, 5, 10])).prompt.ids) == 20
