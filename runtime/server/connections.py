"""Connections that do not wait for ever: for a request's head, or for a client to read what it is sent."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from runtime.server.settings import Limits


def timed_protocol(limits: Limits) -> type[asyncio.Protocol]:
    """uvicorn's protocol with the limits of its connections."""

    class Timed(TimedProtocol):
        head_s, reader_s = limits.head_s, limits.reader_s

    return Timed


class TimedProtocol(H11Protocol):
    """uvicorn bounds only the time between two requests."""

    head_s: float
    reader_s: float

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._head_timer: asyncio.TimerHandle | None = None
        self._reader_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """From here on a request is waited for."""
        super().connection_made(transport)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        """The head may be whole now, or a next one has begun."""
        super().data_received(data)
        self._await_head()

    def pause_writing(self) -> None:
        """The client does not read as fast as it is written to."""
        super().pause_writing()
        self._reader_timer = self.loop.call_later(self.reader_s, self.transport.abort)

    def resume_writing(self) -> None:
        """It does again."""
        super().resume_writing()
        _cancel(self._reader_timer)
        self._reader_timer = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for any more."""
        _cancel(self._head_timer)
        _cancel(self._reader_timer)
        super().connection_lost(exc)

    def _await_head(self) -> None:
        """One timer for each head: more bytes of it give no more time."""
        if self.cycle is not None and not self.cycle.response_complete:
            _cancel(self._head_timer)
            self._head_timer = None
        elif self._head_timer is None:
            self._head_timer = self.loop.call_later(self.head_s, self._no_head)

    def _no_head(self) -> None:
        self._head_timer = None
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
