"""A server for the command line: the client in a thread of its own, its events taken one by one."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Coroutine
from typing import Any

from runtime.client.remote.client import RemoteClient
from runtime.client.remote.server import Server
from runtime.errors import DecdecError
from runtime.protocol.commands import Command
from runtime.protocol.events import Event

POLL_S = 0.1
JOIN_S = 5.0


class RemoteWorker:
    """What `run_job` needs of an engine; raises DecdecError where no connection can be made."""

    def __init__(self, server: Server) -> None:
        self._client = RemoteClient(server)
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="server-events")

    def __enter__(self) -> RemoteWorker:
        self._thread.start()
        try:
            self._do(self._client.start())
        except DecdecError:
            self._end()
            raise
        asyncio.run_coroutine_threadsafe(self._forward(), self._loop)
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._end()

    def send(self, command: Command) -> None:
        """Send; a connection that was ended takes nothing any more."""
        with contextlib.suppress(DecdecError):
            self._do(self._client.send(command))

    def next_event(self) -> Event | None:
        """The next event, None after a short wait."""
        try:
            return self._events.get(timeout=POLL_S)
        except queue.Empty:
            return None

    def kill(self) -> None:
        """End every request now."""
        self._do(self._client.close())

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _forward(self) -> None:
        async for event in self._client.events():
            self._events.put(event)

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(JOIN_S)
        self._loop.close()
