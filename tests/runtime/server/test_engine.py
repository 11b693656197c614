"""The engine under a server: a worker that dies, does not start, talks nonsense, or cannot load."""

import asyncio
import os
import shlex
import signal
import sys

import openai
import pytest

from runtime.errors import DecdecError
from runtime.protocol import Done, Generate, Load, Message, SetSlowdown, Stats, Token
from runtime.server import engine as engines
from runtime.server.engine import Engine
from runtime.server.errors import ApiError
from runtime.server.line import Order
from tests.runtime.server.conftest import MODEL, OTHER, PATIENCE_S, ask


@pytest.fixture
async def engine(worker):
    engine = Engine(Load(MODEL), 5.0, lambda event: None)
    yield engine
    await engine.close()


def order(text="hello", model=MODEL, slowdown_pct=None, **fields):
    slide = None if slowdown_pct is None else SetSlowdown(slowdown_pct)
    return Order(model, Generate((Message("user", text),), **fields), slide)


async def events_of(engine, wanted, left=None):
    async with asyncio.timeout(PATIENCE_S):
        return [event async for event in engine.answer(wanted, left or asyncio.Event())]


async def text_of(engine, wanted):
    return "".join(event.text for event in await events_of(engine, wanted) if isinstance(event, Token))


async def test_events_of_an_answer_are_tokens_stats_and_one_end(engine):
    events = await events_of(engine, order(max_tokens=3))
    assert {type(event) for event in events} == {Token, Stats, Done}
    assert isinstance(events[-1], Done)
    assert events[-1].result["text"] == "The capital "
    assert engine.state == "ok"


async def test_a_worker_that_died_between_two_answers_is_replaced(engine):
    await engine.bring(MODEL)
    pid = engine._client.pid
    os.kill(pid, signal.SIGKILL)
    while engine._client.alive:
        await asyncio.sleep(0.01)
    assert (await text_of(engine, order(slowdown_pct=10))).startswith("The capital")
    assert engine._client.pid != pid


async def test_a_crash_is_told_and_the_slider_is_set_again_in_the_new_worker(engine):
    await events_of(engine, order(slowdown_pct=10))
    with pytest.raises(ApiError, match="exited with code 139") as caught:
        await events_of(engine, order("!crash", slowdown_pct=10))
    assert caught.value.headers == {"x-should-retry": "false"}
    assert engine.loaded is None
    await engine.recover()
    assert engine.state == "ok"
    stats = [event for event in await events_of(engine, order(slowdown_pct=10)) if isinstance(event, Stats)]
    assert stats[-1].slowdown_target_pct == 10


async def test_an_answer_that_is_dropped_in_the_middle_is_not_mixed_with_the_next(engine):
    events = engine.answer(order("!long"), asyncio.Event())
    await anext(events)
    await events.aclose()
    assert (await text_of(engine, order("!echo"))).startswith('{"type":"generate"')


async def test_an_answer_nobody_waits_for_is_not_begun(engine):
    left = asyncio.Event()
    left.set()
    assert await events_of(engine, order("!crash"), left) == []


async def test_a_worker_that_does_not_stop_is_ended(engine, worker, monkeypatch):
    monkeypatch.setattr(engines, "STOP_GRACE_S", 0.05)
    # One token takes ten seconds here, and only then is the stop seen.
    deaf = worker_that_ignores_stops()
    monkeypatch.setenv("DECDEC_WORKER", deaf)
    left, first = asyncio.Event(), asyncio.Event()

    async def read():
        async for event in engine.answer(order(), left):
            if isinstance(event, Token):
                first.set()

    reading = asyncio.create_task(read())
    await asyncio.wait_for(first.wait(), PATIENCE_S)
    left.set()
    with pytest.raises(ApiError, match="SIGKILL"):
        await asyncio.wait_for(reading, PATIENCE_S)


def worker_that_ignores_stops():
    code = (
        "import sys, time, json\n"
        "say = lambda **event: print(json.dumps(event), flush=True)\n"
        "say(type='ready', pid=1)\n"
        "for line in sys.stdin:\n"
        "    kind = json.loads(line)['type']\n"
        f"    if kind == 'load': say(type='loaded', model='{MODEL}', base='awq4', device='x',"
        " context_limit=9, bytes_in_memory=1)\n"
        "    if kind == 'generate': say(type='token', text='x', index=1); time.sleep(600)\n"
    )
    return shlex.join([sys.executable, "-c", code])


async def test_a_model_that_cannot_be_loaded_gives_way_to_the_last_one(engine, worker):
    worker(broken=["huge"])
    await events_of(engine, order(model=OTHER, slowdown_pct=10))
    with pytest.raises(ApiError, match="needs 900 GB") as caught:
        await events_of(engine, order(model="huge"))
    assert (caught.value.status, caught.value.code) == (503, "model_not_loaded")
    assert engine.state == "failed"
    await engine.recover()
    assert (engine.loaded.model, engine.state) == (OTHER, "ok")


async def test_a_load_that_kills_the_worker_is_no_endless_loop(engine, worker):
    await engine.bring(MODEL)
    worker(crash=["load"])
    await engine._client.kill()
    with pytest.raises(ApiError, match="exited with code 139"):
        await events_of(engine, order())
    await engine.recover()
    assert (engine.loaded, engine.state) == (None, "failed")
    worker()
    assert (await text_of(engine, order())).startswith("The capital")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("/nonexistent/worker", "could not be started"),
        (shlex.join([sys.executable, "-c", "print('hello'); input()"]), "unreadable"),
        (shlex.join([sys.executable, "-c", "raise SystemExit(3)"]), "exited with code 3"),
    ],
)
async def test_a_worker_that_cannot_begin_is_a_sentence_every_time(
    engine, monkeypatch, worker, command, words
):
    monkeypatch.setenv("DECDEC_WORKER", command)
    for _ in range(2):
        with pytest.raises(DecdecError, match=words):
            await asyncio.wait_for(engine.bring(MODEL), PATIENCE_S)
        assert engine.state == "failed"
    worker()
    await asyncio.wait_for(engine.bring(MODEL), PATIENCE_S)
    assert engine.state == "ok"


async def test_a_slider_that_was_asked_for_is_tuned_at_the_start(start, worker):
    worker("--untuned")
    server = await start(slowdown_pct=10.0, must_slide=True)
    assert server.loads == [MODEL, MODEL]
    async with server.openai() as client:
        done = await client.chat.completions.create(**ask("hello"))
    assert done.model_extra["decdec"]["slowdown_target_pct"] == 10.0


async def test_a_slider_cannot_be_asked_for_where_there_is_none(start, worker):
    with pytest.raises(DecdecError, match=r"10 % cannot be set: the base int8 is lossless"):
        await start(slowdown_pct=10.0, must_slide=True, base="int8")


async def test_without_a_model_the_server_lives_and_says_so(start, worker):
    server = await start()
    worker(crash=["load"])
    async with server.openai() as client, server.http() as http:
        with pytest.raises(openai.InternalServerError):
            await client.chat.completions.create(**ask("!crash"))
        with pytest.raises(openai.InternalServerError) as caught:
            await client.chat.completions.create(**ask("hello"))
        assert (caught.value.status_code, caught.value.code) == (503, "model_not_loaded")
        health = await http.get("/health")
        assert (health.status_code, health.json()["status"]) in ((503, "failed"), (503, "loading"))
        worker()
        assert (await client.chat.completions.create(**ask("hello"))).choices
        assert (await http.get("/health")).json() == {"status": "ok", "waiting": 0}
