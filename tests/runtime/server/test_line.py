"""The line before the engine: order, bounds, who leaves, and what a failure means for the next."""

import asyncio

import pytest

from runtime.errors import DecdecError
from runtime.protocol import Done, Generate, Message, Token
from runtime.server.errors import ApiError
from runtime.server.line import Line, Order


class Engine:
    """Writes letters of the order's model name, one whenever it may; notes what it was asked."""

    def __init__(self):
        self.begun, self.ended, self.recovered, self.closed = [], [], 0, False
        self.may = asyncio.Semaphore(0)

    async def answer(self, order, left):
        self.begun.append(order.model)
        if order.model == "bad":
            raise DecdecError("No", "never")
        if order.model == "odd":
            raise ZeroDivisionError
        for index, letter in enumerate(order.model):
            await self.may.acquire()
            if left.is_set():
                break
            yield Token(letter, index)
        self.ended.append(order.model)
        yield Done("generate")

    async def recover(self):
        self.recovered += 1

    async def close(self):
        self.closed = True


@pytest.fixture
async def engine():
    return Engine()


@pytest.fixture
async def line(engine):
    line = Line(engine, 2)
    line.open()
    yield line
    await line.close()


def order(name):
    return Order(name, Generate((Message("user", "x"),)))


async def settled():
    for _ in range(20):
        await asyncio.sleep(0)


async def text(ticket):
    letters = []
    while event := await ticket.next(5):
        letters.append(event.text if isinstance(event, Token) else "")
    return "".join(letters)


async def test_who_comes_first_is_served_first_and_one_at_a_time(line, engine):
    first = line.join(order("abc"))
    await settled()
    others = [line.join(order(name)) for name in ("de", "f")]
    for _ in range(6):
        engine.may.release()
        await settled()
        assert len(engine.begun) - len(engine.ended) <= 1
    assert [await text(each) for each in (first, *others)] == ["abc", "de", "f"]
    assert engine.ended == ["abc", "de", "f"]


async def test_a_full_line_turns_away_and_a_place_left_is_free_at_once(line, engine):
    running = line.join(order("abc"))
    await settled()
    waiting = [line.join(order(name)) for name in ("d", "e")]
    with pytest.raises(ApiError, match="2 requests wait") as caught:
        line.join(order("f"))
    assert (caught.value.status, caught.value.headers["retry-after"]) == (429, "2")
    waiting[0].leave()
    assert line.waiting == 1
    last = line.join(order("f"))
    for _ in range(5):
        engine.may.release()
    assert [await text(each) for each in (running, waiting[1], last)] == ["abc", "e", "f"]
    assert engine.begun == ["abc", "e", "f"]


async def test_who_leaves_in_the_middle_makes_room_for_the_next(line, engine):
    running = line.join(order("abcdef"))
    following = line.join(order("g"))
    engine.may.release()
    assert await running.next(5) == Token("a", 0)
    running.leave()
    engine.may.release()
    engine.may.release()
    assert await text(following) == "g"


@pytest.mark.parametrize(
    ("name", "status", "words"), [("bad", 500, "No: never."), ("odd", 500, "unexpected")]
)
async def test_a_failure_is_told_and_the_next_is_served(line, engine, name, status, words):
    failing, following = line.join(order(name)), line.join(order("a"))
    engine.may.release()
    with pytest.raises(ApiError, match=words) as caught:
        await failing.next(5)
    assert caught.value.status == status
    assert await text(following) == "a"


async def test_the_engine_may_recover_after_every_order(line, engine):
    for name in ("bad", "a"):
        engine.may.release()
        line.join(order(name))
    await settled()
    assert engine.recovered == 2


async def test_closing_turns_everybody_away(engine):
    line = Line(engine, 2)
    line.open()
    tickets = [line.join(order("abc")), line.join(order("d"))]
    await settled()
    await line.close()
    for ticket in tickets:
        with pytest.raises(ApiError, match="stopping"):
            await ticket.next(5)
    with pytest.raises(ApiError, match="stopping"):
        line.join(order("e"))
    assert engine.closed


async def test_waiting_has_an_end_when_asked_for(line):
    ticket = line.join(order("abc"))
    with pytest.raises(TimeoutError):
        await ticket.next(0.01)
