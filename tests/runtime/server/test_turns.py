"""Clients that share one engine over HTTP: turns, leaving, bounds, and the end of the server."""

import asyncio
import contextlib
import json
import os

import openai
import pytest

from runtime.protocol import Done, Token
from tests.runtime.server.conftest import MODEL, PATIENCE_S, ask


async def until(condition):
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0.01)


def ends(server):
    return [event.result["finish_reason"] for event in server.events if isinstance(event, Done)]


def tokens(server):
    return sum(isinstance(event, Token) for event in server.events)


def complete(client, text, **fields):
    """A running request."""
    return asyncio.create_task(client.chat.completions.create(**ask(text, **fields)))


async def left(task):
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def health(server):
    async with server.http() as client:
        return (await client.get("/health")).json()


async def test_two_clients_at_once_are_served_in_turn(start, worker):
    worker(rate=300, replies=["one " * 10, "two " * 10])
    server = await start()
    async with server.openai() as first, server.openai() as second:
        answers = [complete(first, "hello"), complete(second, "hello")]
        texts = [(await answer).choices[0].message.content for answer in answers]
    assert texts == ["one " * 10, "two " * 10]
    words = [event.text for event in server.events if isinstance(event, Token)]
    assert words == ["one "] * 10 + ["two "] * 10


async def test_a_stream_that_is_left_stops_the_engine(start, worker):
    worker(rate=100)
    server = await start()
    async with server.openai() as client:
        stream = await client.chat.completions.create(**ask("!long", stream=True))
        async for chunk in stream:
            if chunk.choices[0].delta.content:
                break
        await stream.close()
        await until(lambda: ends(server) == ["stopped"])
        assert tokens(server) < 5000
        assert (await client.chat.completions.create(**ask("hello"))).choices[0].finish_reason == "stop"


async def test_a_whole_answer_that_is_left_stops_the_engine(start, worker):
    worker(rate=100)
    server = await start()
    async with server.openai() as client:
        answer = complete(client, "!long")
        await until(lambda: tokens(server) > 3)
        await left(answer)
        await until(lambda: ends(server) == ["stopped"])


async def test_who_leaves_the_line_is_never_begun(start, worker):
    worker(rate=100)
    server = await start()
    async with server.openai() as client, server.openai() as other:
        running = complete(client, "!long")
        await until(lambda: tokens(server) > 0)
        queued = complete(other, "hello")
        while (await health(server))["waiting"] != 1:
            await asyncio.sleep(0.01)
        await left(queued)
        while (await health(server))["waiting"] != 0:
            await asyncio.sleep(0.01)
        await left(running)
        await until(lambda: ends(server) == ["stopped"])
        done = await client.chat.completions.create(**ask("!echo"))
    assert json.loads(done.choices[0].message.content)["messages"][0]["content"] == "!echo"
    assert ends(server) == ["stopped", "stop"]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_full_line_says_when_to_come_again(start, worker, stream):
    worker(rate=100)
    server = await start(waiting=1)
    async with server.openai() as client:
        running = complete(client, "!long")
        await until(lambda: tokens(server) > 0)
        queued = complete(client, "hello")
        while (await health(server))["waiting"] != 1:
            await asyncio.sleep(0.01)
        with pytest.raises(openai.RateLimitError, match="1 requests wait") as caught:
            await client.chat.completions.create(**ask("hello", stream=stream))
        assert caught.value.response.headers["retry-after"] == "2"
        await left(running)
        assert (await queued).choices[0].finish_reason == "stop"


async def test_a_silent_stream_is_kept_open_by_comments(start, worker):
    worker(rate=10)
    server = await start(silence_s=0.01)
    async with server.http() as client:
        body = (await client.post("/v1/chat/completions", json=ask("hello", stream=True, max_tokens=2))).text
    assert body.startswith(": waiting\n\n")
    async with server.openai() as client:
        stream = await client.chat.completions.create(**ask("hello", stream=True, max_tokens=2))
        assert "".join([c.choices[0].delta.content or "" async for c in stream]) == "The capi"[:8]


async def test_the_end_of_the_server_ends_answers_and_the_worker(start, worker):
    worker(rate=100)
    server = await start()
    async with server.openai() as client:
        running, queued = complete(client, "!long"), complete(client, "hello")
        await until(lambda: tokens(server) > 0)
        pid = server.service._engine._client.pid
        server.service.stop()
        for answer in (running, queued):
            with pytest.raises(openai.InternalServerError, match="stopping"):
                await answer
        await asyncio.wait_for(server.task, PATIENCE_S)
        with pytest.raises(openai.APIConnectionError):
            await client.models.list()
    assert not os.path.exists(f"/proc/{pid}")


async def test_so_many_requests_at_once_and_no_more(start, worker):
    worker(rate=100)
    server = await start(requests=1)
    async with server.openai() as client, server.http() as other:
        running = complete(client, "!long")
        await until(lambda: tokens(server) > 0)
        answer = await other.get("/v1/models")
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "too_many_requests")
        await left(running)
        while (await other.get("/v1/models")).status_code != 200:
            await asyncio.sleep(0.01)
    assert server.loads == [MODEL]
