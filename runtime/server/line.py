"""The line before the engine: first come, first served, of bounded length; who leaves makes room at once."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Protocol

from runtime.errors import DecdecError
from runtime.protocol.commands import Generate, SetSlowdown
from runtime.protocol.events import Event
from runtime.server import errors
from runtime.server.errors import ApiError

# What a client that found the line full is told to wait before it asks again.
RETRY_AFTER_S = 2
log = logging.getLogger("decdec.server")


@dataclass(frozen=True, slots=True)
class Order:
    """One answer that is asked for. `slide`: where the slider stands in it, None for the server's place."""

    model: str
    generate: Generate
    slide: SetSlowdown | None = None


class Answerer(Protocol):
    """What stands behind the line: `runtime.server.engine.Engine`."""

    def answer(self, order: Order, left: asyncio.Event) -> AsyncGenerator[Event, None]:
        """Events of one answer, which ends early once `left` is set. Raises DecdecError or ApiError."""
        ...

    async def recover(self) -> None:
        """Have a model in memory again after a failure, if that can be."""
        ...

    async def close(self) -> None:
        """End it."""
        ...


class Ticket:
    """An order's place in the line, and the events of its answer."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self.left = asyncio.Event()
        self._events: asyncio.Queue[Event | ApiError | None] = asyncio.Queue()

    def leave(self) -> None:
        """Nobody waits for this answer any more: it is not begun, or ended within a token."""
        self.left.set()

    def put(self, event: Event | ApiError | None) -> None:
        """Hand on an event, a failure, or None at the end."""
        self._events.put_nowait(event)

    async def next(self, timeout_s: float | None = None) -> Event | None:
        """The next event, None at the end; raises ApiError for a failure, TimeoutError after `timeout_s`."""
        async with asyncio.timeout(timeout_s):
            event = await self._events.get()
        if isinstance(event, ApiError):
            raise event
        return event


class Line:
    """Serves orders one after the other, in the order in which they came."""

    def __init__(self, engine: Answerer, limit: int) -> None:
        self._engine, self._limit = engine, limit
        self._waiting: deque[Ticket] = deque()
        self._arrived = asyncio.Event()
        self._current: Ticket | None = None
        self._closed = False
        self._server: asyncio.Task[None] | None = None

    @property
    def waiting(self) -> int:
        """Orders that are not begun and that somebody still waits for."""
        self._waiting = deque(ticket for ticket in self._waiting if not ticket.left.is_set())
        return len(self._waiting)

    def join(self, order: Order) -> Ticket:
        """A place at the end; raises ApiError when the line is full."""
        if self._closed:
            raise errors.stopping()
        if self.waiting >= self._limit:
            sentence = f"{self._limit} requests wait already: try again in a moment."
            headers = {"retry-after": str(RETRY_AFTER_S)}
            raise ApiError(429, sentence, "queue_full", headers=headers)
        ticket = Ticket(order)
        self._waiting.append(ticket)
        self._arrived.set()
        return ticket

    def open(self) -> None:
        """Begin to serve."""
        self._server = asyncio.create_task(self._serve())

    async def close(self) -> None:
        """Turn away who waits, end the running answer and the engine."""
        self._closed = True
        if self._server:
            self._server.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._server
        for ticket in (self._current, *self._waiting):
            if ticket:
                ticket.put(errors.stopping())
        await self._engine.close()

    async def _serve(self) -> None:
        while True:
            self._current = ticket = await self._next()
            try:
                await self._answer(ticket)
                self._current = None
                await self._engine.recover()
            except Exception:
                log.exception("an answer failed")
                ticket.put(errors.unexpected())

    async def _next(self) -> Ticket:
        while not self.waiting:
            self._arrived.clear()
            await self._arrived.wait()
        return self._waiting.popleft()

    async def _answer(self, ticket: Ticket) -> None:
        try:
            async with contextlib.aclosing(self._engine.answer(ticket.order, ticket.left)) as events:
                async for event in events:
                    ticket.put(event)
            ticket.put(None)
        except ApiError as error:
            ticket.put(error)
        except DecdecError as error:
            ticket.put(errors.no_answer(error))
