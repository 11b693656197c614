"""Fitting a conversation: the earliest question that fits, found without rendering all again and again."""

import random

import pytest

from runtime.errors import DecdecError
from runtime.generation.context import ContextWindow
from runtime.protocol import Message

LIMIT = 100
# A quarter of the context for the answer, and a quarter that is freed.
WANTED = LIMIT // 2


class Prompts:
    """A token for each character; `rendered`: lengths of all that was built."""

    def __init__(self):
        self.rendered = []

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
        assert sum(prompts.rendered) <= whole + 20 * LIMIT


def test_a_last_question_longer_than_wanted_stays_alone():
    fitted = ContextWindow(Prompts(), LIMIT).fit(conversation([40, 40, 80]))
    assert (fitted.dropped, len(fitted.prompt.ids)) == (2, 80)


def test_a_last_question_that_never_fits_is_refused():
    with pytest.raises(DecdecError, match="it has 120 tokens"):
        ContextWindow(Prompts(), LIMIT).fit(conversation([40, 40, 120]))
