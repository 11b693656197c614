"""This project's own client of such servers, in the engine's place, hears what a worker would have told."""

import asyncio

from runtime.client.remote import RemoteClient, Server
from runtime.protocol import Done, Failed, Generate, Load, Loaded, Message, Stats, Token
from tests.runtime.server.conftest import MODEL, PATIENCE_S
from tests.runtime.server.test_chat import ANSWER


async def until(client, kind):
    seen = []
    async with asyncio.timeout(PATIENCE_S):
        async for event in client.events():
            assert not isinstance(event, Failed), event
            seen.append(event)
            if isinstance(event, kind):
                return seen
    raise AssertionError("stream ended")


async def test_an_answer_through_the_server_tells_what_one_of_the_worker_tells(start):
    serving = await start(slowdown_pct=10.0)
    client = RemoteClient(Server(serving.url))
    await client.start()
    await client.send(Load(""))
    loaded = (await until(client, Loaded))[-1]
    assert (loaded.model, loaded.context_limit) == (MODEL, 2048)
    await client.send(Generate((Message("user", "hello"),)))
    events = await until(client, Done)
    assert "".join(event.text for event in events if isinstance(event, Token)) == ANSWER
    last = [event for event in events if isinstance(event, Stats)][-1]
    told = [event for event in serving.events if isinstance(event, Stats)][-1]
    names = ("prompt_tokens", "completion_tokens", "slowdown_target_pct", "slowdown_measured_pct", "k_chunk")
    assert [getattr(last, name) for name in names] == [getattr(told, name) for name in names]
    assert last.channels_corrected == told.channels_corrected > 0
    await client.close()
