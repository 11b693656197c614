"""A server from its socket to its end: bind, load, serve, and leave no process behind."""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import socket
import sys
from collections.abc import Callable
from typing import Any

import uvicorn

from runtime.errors import DecdecError
from runtime.protocol.commands import LOSSLESS
from runtime.protocol.events import Event, Loaded
from runtime.server.access import MAX_HEAD_BYTES
from runtime.server.app import build_app
from runtime.server.connections import timed_protocol
from runtime.server.engine import Engine
from runtime.server.line import Line
from runtime.server.logs import logged_to_file
from runtime.server.settings import Limits, Settings

FIXES = {
    errno.EADDRINUSE: "end the program that has it, or choose another with --port (0 takes any that is free)",
    errno.EACCES: "choose one above 1023 with --port",
}
IDLE_S = 30
# Running answers were ended before: what is left is to send a few bytes.
GRACEFUL_S = 5
BACKLOG = 128


def bind(host: str, port: int) -> socket.socket:
    """A socket that has the address but does not listen yet; DecdecError where it cannot be had."""
    try:
        if not host.strip():
            raise OSError("it is empty")
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        # `localhost` may be both: the older kind is understood everywhere.
        family, kind, protocol, _, address = min(found, key=lambda each: each[0] != socket.AF_INET)
        bound = socket.socket(family, kind, protocol)
    except UnicodeError as error:
        raise DecdecError(f"The address {host!r} cannot be used", "no host has such a name") from error
    except OSError as error:
        raise DecdecError(f"The address {host!r} cannot be used", error.strerror or str(error)) from error
    try:
        # Each system's own words for: at once after another server, and never beside one.
        if sys.platform == "win32":
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
        else:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError as error:
        bound.close()
        raise _unusable(host, port, error) from error
    return bound


def _unusable(host: str, port: int, error: OSError) -> DecdecError:
    why = (error.strerror or str(error)).lower()
    fix = FIXES.get(error.errno or 0, "check --host")
    return DecdecError(f"Port {port} of {host} cannot be used", why, fix)


def is_loopback(bound: socket.socket) -> bool:
    """Whether only this machine can reach it."""
    return ipaddress.ip_address(bound.getsockname()[0].partition("%")[0]).is_loopback


def url_of(host: str, bound: socket.socket) -> str:
    """What clients call the base URL."""
    return f"http://{f'[{host}]' if ':' in host else host}:{bound.getsockname()[1]}/v1"


class Service:
    """Everything behind one socket; an async context, which ends the worker whatever happens in it."""

    def __init__(self, settings: Settings, bound: socket.socket, on_event: Callable[[Event], None]) -> None:
        """Every event of the engine goes to `on_event` too."""
        self._settings, self._bound = settings, bound
        self._engine = Engine(settings.load, settings.slowdown_pct, on_event)
        self._line = Line(self._engine, settings.limits.waiting)
        app = build_app(settings, self._engine, self._line)
        self._server = Server(_config(settings.limits, app), self._line)
        self._log = contextlib.ExitStack()

    async def __aenter__(self) -> Service:
        self._log.enter_context(logged_to_file())
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._line.close()
        self._log.close()

    async def load(self) -> Loaded:
        """Have the first model in memory, and listen; DecdecError where it cannot be loaded or tuned."""
        load, must_slide = self._settings.load, self._settings.must_slide
        if must_slide and load.base == LOSSLESS:
            raise _cannot_slide(self._settings, f"the base {LOSSLESS} is lossless")
        loaded = await self._engine.bring(load.model)
        if must_slide and not loaded.path:
            loaded = await self._engine.tune(load.model)
        if must_slide and not loaded.path:
            raise _cannot_slide(self._settings, loaded.untuned_reason or "no profile fits")
        self._listen()
        return loaded

    def _listen(self) -> None:
        """Two may have one address while neither listens: the later one is told now."""
        try:
            self._bound.listen(BACKLOG)
        except OSError as error:
            host, port = self._bound.getsockname()[:2]
            raise _unusable(host, port, error) from error

    async def run(self) -> None:
        """Answer until `stop`, or until the process is told to end."""
        self._line.open()
        await self._server.serve([self._bound])

    def stop(self) -> None:
        """End `run` within moments: who waits is told so."""
        self._server.should_exit = True


class Server(uvicorn.Server):
    """Ends answers before it waits for the connections that carry them."""

    def __init__(self, config: uvicorn.Config, line: Line) -> None:
        super().__init__(config)
        self._line = line

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Called once, on a signal."""
        await self._line.close()
        await super().shutdown(sockets)


def _config(limits: Limits, app: Any) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=timed_protocol(limits),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=BACKLOG,
        timeout_keep_alive=IDLE_S,
        timeout_graceful_shutdown=GRACEFUL_S,
        h11_max_incomplete_event_size=MAX_HEAD_BYTES,
    )


def _cannot_slide(settings: Settings, reason: str) -> DecdecError:
    return DecdecError(f"A slowdown of {settings.slowdown_pct:g} % cannot be set", reason)
