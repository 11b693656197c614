"""Bodies of questions, and how they change when a server does not take them."""

import json

import pytest

from runtime.client.remote.failures import Refused
from runtime.client.remote.request import ChatRequest
from runtime.protocol import Generate, Message, Sampling

U, A, S = "user", "assistant", "system"


def request(*messages, **fields):
    said = messages or ((U, "hi"),)
    return ChatRequest(Generate(tuple(Message(role, text) for role, text in said), **fields), "m")


def body(of):
    return json.loads(of.body())


def test_only_what_was_asked_for_is_sent():
    assert body(request()) == {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_sampling_stops_and_limit_are_sent_by_the_names_that_servers_know():
    sampling = Sampling(temperature=0.0, top_k=5, repetition_penalty=1.1, seed=3)
    sent = body(request(sampling=sampling, max_tokens=7, stop=("END",)))
    assert {name: sent[name] for name in ("temperature", "top_k", "seed", "max_tokens", "stop")} == {
        "temperature": 0.0, "top_k": 5, "seed": 3, "max_tokens": 7, "stop": ["END"],
    }  # fmt: skip
    assert sent["repetition_penalty"] == sent["repeat_penalty"] == 1.1
    assert "top_p" not in sent


def test_an_answer_that_goes_on_is_the_last_message():
    going_on = request((U, "q"), (A, "half an"))
    assert going_on.continued == "half an"
    assert body(going_on)["continue_final_message"] is True
    assert body(going_on)["add_generation_prompt"] is False
    assert request().continued == ""


def test_what_is_no_unicode_is_sent_all_the_same():
    assert body(request((U, "a\ud83d"), (A, "é")))["messages"][0]["content"] == "a?"


def test_own_fields_that_a_server_does_not_know_are_left_out():
    refused = Refused(400, "Unrecognized request argument supplied: stream_options")
    adapted = request().adapted(refused)
    assert "stream_options" not in body(adapted)
    assert adapted.adapted(refused) is None


def test_a_limit_is_renamed_where_it_has_another_name():
    refused = Refused(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")
    adapted = request(max_tokens=9).adapted(refused)
    assert (body(adapted)["max_completion_tokens"], "max_tokens" in body(adapted)) == (9, False)
    assert request().adapted(refused) is None


@pytest.mark.parametrize(
    "said",
    [
        "This model's maximum context length is 4096 tokens. However, you requested 9000 tokens",
        "request (9412 tokens) exceeds the available context size (8192 tokens), try increasing it",
        "the request exceeds the available context size. exceed_context_size_error",
        "The decoder prompt (length 5000) is longer than the maximum model length of 4096",
        "context_length_exceeded",
    ],
)
def test_a_conversation_too_long_loses_its_older_half_until_the_last_question(said):
    turns = [(role, f"{role}{at}") for at in range(4) for role in (U, A)][:-1]
    long, refused, sent = request((S, "rules"), *turns), Refused(400, said), []
    while long := long.adapted(refused):
        sent.append([message.content for message in long.messages])
    assert sent == [
        ["rules", "user2", "assistant2", "user3"],
        ["rules", "user3"],
    ]


def test_what_was_dropped_is_counted():
    turns = [(U, "a"), (A, "b"), (U, "c")]
    assert request(*turns).adapted(Refused(400, "context length")).dropped == 2


@pytest.mark.parametrize("status", [401, 403, 404, 429, 503])
def test_other_refusals_change_nothing(status):
    long = request((U, "a"), (A, "b"), (U, "c"))
    assert long.adapted(Refused(status, "stream_options, maximum context length")) is None
