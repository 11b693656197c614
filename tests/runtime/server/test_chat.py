"""Chats by the official client against the scripted worker: shapes, fields, streams, and every failure."""

import json

import openai
import pytest

from tests.runtime.server.conftest import MODEL, OTHER, ask

ANSWER = "The capital of France is **Paris**; cafés and 東京 \U0001f600 too."


async def echo(client, **fields):
    """What the engine was asked for."""
    completion = await client.chat.completions.create(**{**ask("!echo"), **fields})
    return json.loads(completion.choices[0].message.content)


async def test_an_answer_is_whole_with_usage_and_the_slider(start):
    server = await start()
    async with server.openai() as client:
        done = await client.chat.completions.create(**ask("hello"))
    assert done.object == "chat.completion"
    assert (done.model, done.choices[0].message.role, done.choices[0].index) == (MODEL, "assistant", 0)
    assert done.choices[0].message.content == ANSWER
    assert done.choices[0].finish_reason == "stop"
    # The scripted worker counts "hello" as 5 // 4 + 4 tokens, and writes four characters a token.
    assert (done.usage.prompt_tokens, done.usage.completion_tokens) == (5, -(-len(ANSWER) // 4))
    assert done.usage.total_tokens == done.usage.prompt_tokens + done.usage.completion_tokens
    figures = done.model_extra["decdec"]
    assert figures["slowdown_target_pct"] == 5.0
    assert figures["slowdown_measured_pct"] == pytest.approx(4.8)
    assert figures["k_chunk"] == {"qkv": 12, "o": 6, "gate_up": 24, "down": 12}
    assert figures["channels_corrected"] == 54 * 30
    assert (figures["base"], figures["device"]) == ("awq4", "cpu (fake)")


async def test_a_stream_says_the_same_piece_by_piece(start):
    server = await start()
    async with server.openai() as client:
        stream = await client.chat.completions.create(
            **ask("hello", stream=True, stream_options={"include_usage": True})
        )
        chunks = [chunk async for chunk in stream]
    assert chunks[0].choices[0].delta.role == "assistant"
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == ANSWER
    assert [c.choices[0].finish_reason for c in chunks[:-1]] == [None] * (len(chunks) - 2) + ["stop"]
    assert chunks[-2].model_extra["decdec"]["slowdown_target_pct"] == 5.0
    assert chunks[-1].choices == []
    assert (chunks[-1].usage.prompt_tokens, chunks[-2].usage) == (5, None)
    assert {(c.id, c.object, c.model) for c in chunks} == {(chunks[0].id, "chat.completion.chunk", MODEL)}


async def test_a_stream_without_usage_has_none(start):
    server = await start()
    async with server.http() as client:
        body = (await client.post("/v1/chat/completions", json=ask("hello", stream=True))).text
    assert body.endswith("data: [DONE]\n\n")
    chunks = [json.loads(line[6:]) for line in body.splitlines() if line.startswith("data: {")]
    assert not any("usage" in chunk for chunk in chunks)


async def test_a_second_turn_counts_what_the_cache_held(start):
    server = await start()
    async with server.openai() as client:
        await client.chat.completions.create(**ask("hello"))
        second = await client.chat.completions.create(**ask("hello again"))
    assert second.usage.prompt_tokens_details.cached_tokens == second.usage.prompt_tokens == 6


async def test_every_field_reaches_the_engine(start):
    server = await start()
    async with server.openai() as client:
        asked = await echo(
            client,
            temperature=0.5,
            top_p=0.9,
            seed=-7,
            max_completion_tokens=900,
            max_tokens=3,
            stop=["\n\n\n", ""],
            extra_body={"top_k": 40, "min_p": 0.05, "repetition_penalty": 1.1, "nonsense": {"a": 1}},
            user="somebody",
            n=1,
            response_format={"type": "text"},
            presence_penalty=0,
            logprobs=False,
            tools=[],
        )
    assert asked["sampling"] == {
        "temperature": 0.5, "top_p": 0.9, "top_k": 40, "min_p": 0.05, "repetition_penalty": 1.1, "seed": -7,
    }  # fmt: skip
    assert (asked["max_tokens"], asked["stop"]) == (900, ["\n\n\n"])


async def test_nothing_asked_for_leaves_the_models_own_settings(start):
    server = await start()
    async with server.openai() as client:
        asked = await echo(client)
    assert set(asked["sampling"].values()) == {None}
    assert (asked["max_tokens"], asked["stop"]) == (None, [])


async def test_roles_and_parts_become_plain_messages(start):
    server = await start()
    messages = [
        {"role": "developer", "content": "Be brief."},
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]},
        {"role": "assistant", "content": "", "name": "x"},
        {"role": "user", "content": "!echo"},
    ]
    async with server.openai() as client:
        asked = await echo(client, messages=messages)
    assert [(m["role"], m["content"]) for m in asked["messages"]] == [
        ("system", "Be brief.\n\nBe kind."),
        ("user", "one\ntwo"),
        ("assistant", ""),
        ("user", "!echo"),
    ]


async def test_a_last_message_of_the_assistant_is_handed_on_to_be_continued(start):
    server = await start()
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "!echo"}]
    async with server.openai() as client:
        asked = await echo(client, messages=messages)
    assert asked["messages"][-1]["role"] == "assistant"


@pytest.mark.parametrize(
    ("stop", "text"), [(" of", "The capital"), ([";", "**"], "The capital of France is ")]
)
async def test_stop_strings_end_the_answer_and_are_not_shown(start, stop, text):
    server = await start()
    async with server.openai() as client:
        done = await client.chat.completions.create(**ask("hello", stop=stop))
    assert (done.choices[0].message.content, done.choices[0].finish_reason) == (text, "stop")


async def test_a_limit_is_a_reason(start):
    server = await start()
    async with server.openai() as client:
        done = await client.chat.completions.create(**ask("hello", max_tokens=2))
    assert (done.choices[0].finish_reason, done.usage.completion_tokens) == ("length", 2)


async def test_the_slider_moves_for_one_answer_alone(start):
    server = await start(slowdown_pct=2.5)
    async with server.openai() as client:
        targets = [
            (await client.chat.completions.create(**ask("hello", extra_body=extra))).model_extra["decdec"]
            for extra in ({}, {"slowdown_pct": 20}, {"slowdown_pct": 0}, {})
        ]
    assert [figures["slowdown_target_pct"] for figures in targets] == [2.5, 20.0, 0.0, 2.5]
    assert targets[1]["k_chunk"]["qkv"] > targets[0]["k_chunk"]["qkv"] > targets[2]["k_chunk"]["qkv"] == 0


async def test_a_model_that_is_not_tuned_answers_at_nothing_and_says_so_when_asked_for_more(start, worker):
    worker("--untuned")
    server = await start()
    async with server.openai() as client:
        done = await client.chat.completions.create(**ask("hello"))
        assert done.model_extra["decdec"]["slowdown_target_pct"] == 0.0
        with pytest.raises(
            openai.BadRequestError, match=r"not tuned on this device yet.*decdec-chat tune"
        ) as caught:
            await client.chat.completions.create(**ask("hello", extra_body={"slowdown_pct": 5}))
        assert (caught.value.param, caught.value.code) == ("slowdown_pct", "no_such_place")
        await client.chat.completions.create(**ask("hello", extra_body={"slowdown_pct": 0}))


@pytest.mark.parametrize(("base", "held"), [("awq4", True), ("awq4", False), ("int8", True)])
async def test_the_lossless_stop_is_for_models_that_have_it(start, worker, base, held):
    worker(lossless=held, untuned=base == "int8")
    server = await start(base=base)
    async with server.openai() as client:
        asking = client.chat.completions.create(**ask("hello", extra_body={"slowdown_pct": "lossless"}))
        if not held:
            with pytest.raises(openai.BadRequestError, match="does not fit in memory") as caught:
                await asking
            assert caught.value.code == "no_such_place"
            return
        assert (await asking).model_extra["decdec"]["lossless"] is True
        after = await client.chat.completions.create(**ask("hello"))
        assert after.model_extra["decdec"]["lossless"] == (base == "int8")


async def test_a_lossless_base_has_no_slider(start, worker):
    worker("--untuned")
    server = await start(base="int8")
    async with server.openai() as client:
        with pytest.raises(openai.BadRequestError, match="the base int8 is lossless"):
            await client.chat.completions.create(**ask("hello", extra_body={"slowdown_pct": 5}))


async def test_another_prepared_model_is_loaded_and_default_is_the_first(start):
    server = await start()
    async with server.openai() as client:
        names = [
            (await client.chat.completions.create(**{**ask("hello"), "model": name})).model
            for name in (OTHER.upper(), OTHER, "default", MODEL)
        ]
        assert names == [OTHER, OTHER, MODEL, MODEL]
        assert server.loads == [MODEL, OTHER, MODEL]
        for unknown in ("gpt-4o", "third"):
            with pytest.raises(openai.NotFoundError, match=f"no model '{unknown}'") as caught:
                await client.chat.completions.create(**{**ask("hello"), "model": unknown})
            assert caught.value.code == "model_not_found"


async def test_what_the_engine_refuses_is_one_sentence(start):
    server = await start()
    async with server.openai() as client:
        with pytest.raises(openai.InternalServerError) as caught:
            await client.chat.completions.create(**ask("!fail"))
        assert caught.value.body == {
            "message": "The answer failed: the device ran out of memory. Shorten the chat.",
            "type": "server_error",
            "param": None,
            "code": "engine_failed",
        }
        assert (await client.chat.completions.create(**ask("hello"))).choices[0].message.content == ANSWER


async def test_a_question_that_does_not_fit_is_the_clients_to_shorten(start, worker):
    failed = {
        "type": "error",
        "job": "generate",
        "what": "The question does not fit",
        "why": "it is too long",
    }
    worker(fail={"generate": failed})
    server = await start()
    async with server.openai() as client:
        for stream in (False, True):
            with pytest.raises(openai.BadRequestError) as caught:
                await client.chat.completions.create(**ask("hello", stream=stream))
            assert caught.value.code == "context_length_exceeded"


async def test_a_crash_is_one_failure_and_the_next_answer_comes(start):
    server = await start()
    async with server.openai(max_retries=3) as client:
        with pytest.raises(openai.InternalServerError, match="process ended") as caught:
            await client.chat.completions.create(**{**ask("!crash"), "model": OTHER})
        assert caught.value.code == "engine_crashed"
        done = await client.chat.completions.create(**{**ask("hello"), "model": OTHER})
    assert done.choices[0].message.content == ANSWER
    # Once for the start, once for the swap, once after the crash: it was not tried again by the client.
    assert server.loads == [MODEL, OTHER, OTHER]


async def test_a_crash_in_a_stream_that_began_is_an_event_of_it(start):
    server = await start()
    async with server.openai() as client:
        stream = await client.chat.completions.create(**ask("!break", stream=True))
        seen = []

        async def read():
            async for chunk in stream:
                seen.append(chunk.choices[0].delta.content)

        with pytest.raises(openai.APIError, match="process ended"):
            await read()
    assert "".join(seen) == ANSWER[:3]
