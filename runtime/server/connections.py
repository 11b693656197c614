"""Connections that do not wait for ever, and are not too many: a client holds no more than its share."""

from __future__ import annotations

import asyncio
import ipaddress
from typing import Any

import h11
import msgspec
from uvicorn.protocols.http.h11_impl import H11Protocol

from runtime.server.errors import CLOSE, ApiError
from runtime.server.settings import Limits

# A client of IPv6 has as many addresses as it likes below this prefix.
_IPV6_PREFIX = 64


def timed_protocol(limits: Limits) -> type[asyncio.Protocol]:
    """uvicorn's protocol with the limits of its connections."""

    class Timed(TimedProtocol):
        bounds = limits

    return Timed


class TimedProtocol(H11Protocol):
    """uvicorn bounds only the time between two requests."""

    bounds: Limits

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._head_timer: asyncio.TimerHandle | None = None
        self._reader_timer: asyncio.TimerHandle | None = None
        self.peer = ""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """From here on a request is waited for, unless too many are waited for already."""
        super().connection_made(transport)
        # Whatever the system does not take at once counts as unread, the rest of an ended connection too.
        transport.set_write_buffer_limits(high=0)
        self.peer = _peer(self.client[0] if self.client else "")
        if self._crowded:
            self._refuse(ApiError(503, "Too many connections are open.", "too_many_connections"))
        else:
            self._await_head()

    def data_received(self, data: bytes) -> None:
        """The head may be whole now, or a next one has begun."""
        if self._answering:
            self._after_request(data)
            return
        super().data_received(data)
        if self._answering:
            self._after_request(self.conn.trailing_data[0])
        self._await_head()

    def pause_writing(self) -> None:
        """The client does not read as fast as it is written to."""
        super().pause_writing()
        self._reader_timer = self.loop.call_later(self.bounds.reader_s, self.transport.abort)

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

    def send_400_response(self, msg: str) -> None:
        """What is no HTTP gets an error like every other."""
        self._refuse(ApiError(400, "This is no request of HTTP/1.1.", "no_http"))

    @property
    def _crowded(self) -> bool:
        others = [each for each in self.connections if each is not self]
        mine = sum(each.peer == self.peer for each in others if isinstance(each, TimedProtocol))
        full = bool(self.peer) and mine >= self.bounds.connections_each
        return full or len(others) >= self.bounds.connections

    @property
    def _answering(self) -> bool:
        """Whether a request is whole and its answer is not."""
        whole = self.conn.their_state in (h11.DONE, h11.MUST_CLOSE)
        return whole and self.cycle is not None and not self.cycle.response_complete

    def _after_request(self, data: bytes) -> None:
        """One request at a time: a next one that does not wait is not answered.

        It is read nevertheless, for a connection that is not read does not tell that its client has gone.
        """
        if data:
            self.cycle.keep_alive = False
        self.flow.resume_reading()

    def _refuse(self, error: ApiError) -> None:
        """Say why, if anything can be said here still, and end the connection."""
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            for event in _events(error):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _await_head(self) -> None:
        """One timer for each head: more bytes of it give no more time."""
        if self.cycle is not None and not self.cycle.response_complete:
            _cancel(self._head_timer)
            self._head_timer = None
        elif self._head_timer is None:
            self._head_timer = self.loop.call_later(self.bounds.head_s, self._no_head)

    def _no_head(self) -> None:
        self._head_timer = None
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()


def _events(error: ApiError) -> tuple[h11.Response, h11.Data, h11.EndOfMessage]:
    body = msgspec.json.encode(error.body)
    headers = {"content-type": "application/json", "content-length": str(len(body)), **CLOSE}
    return (
        h11.Response(status_code=error.status, headers=[*headers.items()]),
        h11.Data(body),
        h11.EndOfMessage(),
    )


def _peer(address: str) -> str:
    """Whose connection it is; empty on this machine, whose programs cannot be told apart."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return ""
    parsed = getattr(parsed, "ipv4_mapped", None) or parsed
    if parsed.is_loopback:
        return ""
    prefix = _IPV6_PREFIX if parsed.version == 6 else parsed.max_prefixlen
    return str(ipaddress.ip_network((parsed, prefix), strict=False))


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
