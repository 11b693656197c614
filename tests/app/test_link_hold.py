"""The engine's process can be ended for a while without a failure."""

import asyncio

import pytest

from app import link as link_module
from app.link import EngineLink
from runtime.errors import DecdecError
from runtime.protocol.commands import Generate, Load, Message
from runtime.protocol.events import Failed, Loaded, Ready, Token
from tests.app.test_link import until


def count(events, kind):
    return sum(isinstance(event, kind) for event in events)


async def test_a_held_engine_is_gone_without_a_word_and_comes_back(worker):
    worker(rate=50)
    events = []
    link = EngineLink(events.append)
    link.post(Load("m"))
    task = asyncio.create_task(link.run())
    await until(lambda: count(events, Loaded))
    link.post(Generate((Message("user", "!long"),)))
    await until(lambda: count(events, Token))
    await link.hold()
    assert not link.alive
    assert not count(events, Failed)
    link.post(Load("later"))
    await asyncio.sleep(0.2)
    assert count(events, Ready) == 1
    await link.restart()
    await until(lambda: count(events, Loaded) == 2)
    assert events[-1].model == "later"
    assert not link.gave_up
    await link.close()
    await asyncio.wait_for(task, 5)


async def test_an_engine_that_does_not_end_goes_on(worker, monkeypatch):
    monkeypatch.setattr(link_module, "HOLD_S", 0.2)
    events = []
    link = EngineLink(events.append)
    task = asyncio.create_task(link.run())
    await until(lambda: count(events, Ready))

    async def swallow(_):
        pass

    monkeypatch.setattr(link._client, "send", swallow)
    with pytest.raises(DecdecError, match="does not stop"):
        await link.hold()
    monkeypatch.undo()
    assert link.alive
    await link.close()
    await asyncio.wait_for(task, 5)
