"""The link to the engine survives its death."""

import asyncio

from app.link import EngineLink
from runtime.client.remote import RemoteClient, Server
from runtime.protocol.commands import Generate, Load, Message
from runtime.protocol.events import Done, Failed, Loaded, Ready
from tests.fakes.chat_server import ChatServer, Reply, answer


async def until(condition, seconds=20.0):
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.01)


async def test_a_crash_is_an_event_and_a_new_worker_comes(worker):
    events = []
    link = EngineLink(events.append)
    link.post(Load("m"))
    task = asyncio.create_task(link.run())
    await until(lambda: any(isinstance(e, Loaded) for e in events))
    link.post(Generate((Message("user", "!crash"),)))
    await until(lambda: sum(isinstance(e, Ready) for e in events) == 2)
    death = next(e for e in events if isinstance(e, Failed))
    assert death.job == "worker"
    link.post(Load("m"))
    link.post(Generate((Message("user", "hi"),)))
    await until(lambda: isinstance(events[-1], Done))
    await link.close()
    await asyncio.wait_for(task, 5)
    assert not link.alive


async def test_a_worker_that_always_dies_is_given_up_and_can_be_tried_again(worker):
    worker("--crash", "load")
    events = []
    link = EngineLink(lambda e: (events.append(e), isinstance(e, Ready) and link.post(Load("m"))))
    task = asyncio.create_task(link.run())
    await until(lambda: link.gave_up)
    assert sum(isinstance(e, Ready) for e in events) == 3
    await link.restart()
    await until(lambda: sum(isinstance(e, Ready) for e in events) >= 4)
    await link.close()
    await asyncio.wait_for(task, 5)


async def test_a_worker_that_cannot_start_is_an_event(monkeypatch):
    monkeypatch.setenv("DECDEC_WORKER", "/nonexistent/worker")
    events = []
    link = EngineLink(events.append)
    task = asyncio.create_task(link.run())
    await until(lambda: events)
    assert events[0].job == "worker"
    assert link.gave_up
    await link.close()
    await asyncio.wait_for(task, 5)


async def test_a_server_in_the_workers_place_is_driven_the_same_way():
    with ChatServer(Reply.json({"error": "no"}, 500), answer("Hi")) as fake:
        events = []
        link = EngineLink(events.append, RemoteClient(Server.of(fake.url)))
        link.post(Load(""))
        task = asyncio.create_task(link.run())
        await until(lambda: any(isinstance(e, Loaded) for e in events))
        link.post(Generate((Message("user", "hi"),)))
        await until(lambda: isinstance(events[-1], Failed))
        assert events[-1].job == "generate"
        assert link.alive
        link.post(Generate((Message("user", "hi"),)))
        await until(lambda: isinstance(events[-1], Done))
        assert events[-1].result["text"] == "Hi"
        assert sum(isinstance(e, Ready) for e in events) == 1
        await link.close()
        await asyncio.wait_for(task, 5)
        assert not link.alive
