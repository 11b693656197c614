"""One answer on its way to one client, whole or as a stream; a client that goes away ends it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from runtime.protocol.events import Event
from runtime.server.errors import ApiError
from runtime.server.line import Ticket
from runtime.server.replies import Answer

STREAM_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    # A proxy that collects a stream before it passes it on would undo it.
    (b"x-accel-buffering", b"no"),
]
END = b"data: [DONE]\n\n"
COMMENT = b": waiting\n\n"


class AnswerResponse:
    """An ASGI application for a single request, whose body was read already.

    `includes_usage`: a stream ends with the tokens used. `silence_s`: after so long without anything to say a
    stream is begun, or gets a comment; until then a failure still has its own status.
    """

    def __init__(
        self, ticket: Ticket, answer: Answer, stream: bool, includes_usage: bool, silence_s: float
    ) -> None:
        self._ticket, self._answer = ticket, answer
        self._stream, self._includes_usage, self._silence_s = stream, includes_usage, silence_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer; raises ApiError for what fails before anything was sent."""
        gone = asyncio.create_task(_disconnected(receive))
        work = asyncio.create_task(
            self._streamed(send) if self._stream else self._whole(scope, receive, send)
        )
        try:
            await asyncio.wait((gone, work), return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                work.result()
        finally:
            self._ticket.leave()
            gone.cancel()
            work.cancel()
            await asyncio.gather(gone, work, return_exceptions=True)

    async def _whole(self, scope: Scope, receive: Receive, send: Send) -> None:
        while event := await self._ticket.next():
            self._answer.push(event)
        await JSONResponse(self._answer.completion())(scope, receive, send)

    async def _streamed(self, send: Send) -> None:
        begun = False
        try:
            async for piece in self._pieces():
                if not begun:
                    await send({"type": "http.response.start", "status": 200, "headers": STREAM_HEADERS})
                    begun = True
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        except ApiError as error:
            if not begun:
                raise
            await send({"type": "http.response.body", "body": _data(error.body), "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _pieces(self) -> AsyncIterator[bytes]:
        """What goes over the line, event by event."""
        named = False
        async for event in self._events():
            if event is None:
                yield COMMENT
                continue
            if not named:
                named = True
                yield self._chunk({"role": "assistant", "content": ""})
            if text := self._answer.push(event):
                yield self._chunk({"content": text})
        yield self._chunk({})
        if self._includes_usage:
            yield _data(self._answer.usage_chunk())
        yield END

    async def _events(self) -> AsyncIterator[Event | None]:
        """Events, with None for every silence."""
        while True:
            try:
                event = await self._ticket.next(self._silence_s)
            except TimeoutError:
                yield None
                continue
            if event is None:
                return
            yield event

    def _chunk(self, delta: dict[str, Any]) -> bytes:
        return _data(self._answer.chunk(delta, self._includes_usage))


def _data(document: dict[str, Any]) -> bytes:
    return b"data: " + msgspec.json.encode(document) + b"\n\n"


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
