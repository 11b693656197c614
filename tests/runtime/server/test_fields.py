"""What a request may hold: each refusal names its field and says one sentence."""

import json
import math

import pytest

from runtime.errors import DecdecError
from runtime.generation.context import ContextWindow
from runtime.protocol import Message
from runtime.server.errors import CONVERSATION_FAULTS, ApiError, no_answer
from runtime.server.fields import MAX_MESSAGES, parse
from runtime.text.sandbox import compile_template, render

HUGE = 10**4000
USER = {"role": "user", "content": "hi"}
CALL = {"role": "assistant", "content": "x", "tool_calls": [{"id": "1"}]}
IMAGE = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}


def body(**fields):
    return json.dumps({"messages": [USER], **fields}).encode()


def read(data):
    request = parse(data)
    return request.command(), request.slide()


def refusal(data):
    with pytest.raises(ApiError) as caught:
        read(data)
    error = caught.value
    assert error.status == 400
    assert error.message.endswith(".")
    assert "\n" not in error.message
    assert len(error.message) < 250
    return error


@pytest.mark.parametrize(
    ("fields", "param", "words"),
    [
        ({"temperature": -1}, "temperature", "between 0 and 100"),
        ({"temperature": "hot"}, "temperature", "got str"),
        ({"temperature": math.nan}, "temperature", "between"),
        ({"top_p": 1.5}, "top_p", "between 0 and 1"),
        ({"top_k": -1}, "top_k", "between"),
        ({"top_k": 1.5}, "top_k", "Expected int"),
        ({"min_p": 2}, "min_p", "between"),
        ({"repetition_penalty": 0}, "repetition_penalty", "between"),
        ({"seed": 1 << 63}, "seed", "between"),
        ({"seed": "7"}, "seed", "Expected int"),
        ({"max_tokens": 0}, "max_tokens", "at least 1"),
        ({"max_completion_tokens": -5}, "max_completion_tokens", "at least 1"),
        ({"n": 2}, "n", "must be 1"),
        ({"stop": ["x"] * 17}, "stop", "16"),
        ({"stop": 5}, "stop", "Expected"),
        ({"stop": ["x", "y" * 1001]}, "stop", "1000 characters"),
        ({"stop": "\ud800"}, "stop", "half a character"),
        ({"stop": ["x", "a\udfff"]}, "stop", "half a character"),
        ({"seed": HUGE}, "seed", "not a very long number"),
        ({"n": HUGE}, "n", "not a very long number"),
        ({"top_k": -HUGE}, "top_k", "not a very long number"),
        ({"max_tokens": -HUGE}, "max_tokens", "not a very long number"),
        ({"temperature": HUGE}, "temperature", "out of range"),
        ({"slowdown_pct": HUGE}, "slowdown_pct", "out of range"),
        ({"slowdown_pct": "\ud83d"}, None, "half a character"),
        ({"slowdown_pct": 20.5}, "slowdown_pct", "between 0 and 20"),
        ({"slowdown_pct": -1}, "slowdown_pct", "between"),
        ({"slowdown_pct": "best"}, "slowdown_pct", "Invalid"),
        ({"slowdown_pct": "best" * 1000}, "slowdown_pct", "Invalid"),
        ({"response_format": {"type": "json_object"}}, "response_format", "only be text"),
        ({"response_format": "json"}, "response_format", "only be text"),
        ({"modalities": ["text", "audio"]}, "modalities", "text only"),
        ({"tools": [{"type": "function"}]}, "tools", "not supported"),
        ({"functions": [{}]}, "functions", "not supported"),
        ({"logit_bias": {"5": 1}}, "logit_bias", "not supported"),
        ({"logprobs": True}, "logprobs", "not supported"),
        ({"presence_penalty": 0.5}, "presence_penalty", "repetition_penalty"),
        ({"frequency_penalty": 0.5}, "frequency_penalty", "repetition_penalty"),
        ({"stream": "yes"}, "stream", "Expected bool"),
        ({"messages": []}, "messages", "1 to 4096"),
        ({"messages": [USER] * (MAX_MESSAGES + 1)}, "messages", "not 4097"),
        ({"messages": "hi"}, "messages", "Expected array"),
        ({"messages": [USER, {"content": "x"}]}, "messages[1]", "role"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].role", "'tool' is not supported"),
        ({"messages": [{"role": "x" * 1000, "content": "x"}]}, "messages[0].role", "not supported"),
        ({"messages": [USER, CALL]}, "messages[1].tool_calls", "not supported"),
        ({"messages": [IMAGE]}, "messages[0].content", "'image_url': the model reads text only"),
        ({"messages": [{"role": "user"}]}, "messages[0].content", "missing"),
        ({"messages": [USER, {"role": "system", "content": "x"}]}, "messages", "last message"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_refused_by_name(fields, param, words):
    error = refusal(body(**fields))
    assert error.param == param
    assert words in error.message


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b'{"messages": [{"role": "user", "content": "\xff"}]}', "UTF-8"),
        (b"[" * 100_000, "nested"),
        (b'{"seed": ' + b"9" * 5000 + b"}", "too long"),
        (b"[]", "Expected object"),
        (b"null", "Expected object"),
        (b"{}", "messages"),
    ],
)
def test_what_is_no_request_is_refused(data, words):
    assert words in refusal(data).message


def test_half_an_emoji_loses_no_chat():
    assert (
        parse(b'{"messages": [{"role": "user", "content": "a\\ud83d"}]}').command().messages[0].content[0]
        == "a"
    )


def test_a_system_message_in_the_middle_stays_there():
    asked = body(
        messages=[USER, {"role": "system", "content": "s"}, {"role": "assistant", "content": "a"}, USER]
    )
    roles = [message.role for message in parse(asked).command().messages]
    assert roles == ["user", "system", "assistant", "user"]


def test_more_tokens_than_any_context_are_no_reason_to_refuse():
    assert parse(body(max_tokens=1 << 80)).command().max_tokens == 1 << 31


class LongPrompts:
    """A prompt builder for which everything is 100 tokens."""

    def build(self, messages):
        return type("Prompt", (), {"ids": tuple(range(100))})()

    def least_tokens(self, text):
        return 0


def test_the_engines_own_sentences_about_a_conversation_are_the_clients_fault():
    with pytest.raises(DecdecError) as too_long:
        ContextWindow(LongPrompts(), 50).fit([Message("user", "x")])
    with pytest.raises(DecdecError) as refused:
        render(compile_template("{{ raise_exception('roles must alternate') }}"))
    with pytest.raises(DecdecError) as empty:
        ContextWindow(LongPrompts(), 50).fit([])
    faults = [too_long.value, refused.value, empty.value]
    assert {error.what for error in faults} == set(CONVERSATION_FAULTS)
    assert [no_answer(error).status for error in faults] == [400] * 3
    assert no_answer(DecdecError("Memory ran out in this answer")).status == 500
