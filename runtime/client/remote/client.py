"""A server in the worker's place: the same interface as `WorkerClient`, the same commands and events."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from runtime.client.remote.engine import RemoteEngine
from runtime.client.remote.server import Server
from runtime.errors import DecdecError, Interrupted
from runtime.protocol.commands import Command, Quit, SetSlowdown, Stop
from runtime.protocol.events import Event, Failed, Ready

# The stream is bounded, so a front end that cannot keep up slows the server instead of filling memory.
MAX_WAITING = 10_000


@dataclass(slots=True)
class _Task:
    command: Command
    stopped: bool = False


class RemoteClient:
    """One server. A failure of the network fails one command; the client lives on until `close` or `kill`.

    `Job("server_models")` gives {"models": [{"id", "context"}, …]}, what the server offers; context 0: it
    does not tell.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._engine: RemoteEngine | None = None
        self._loop: asyncio.Task[None] | None = None
        self._work: asyncio.Task[Sequence[Event]] | None = None
        self._waiting: asyncio.Queue[_Task] = asyncio.Queue()
        self._open: list[_Task] = []
        self._events: asyncio.Queue[Event | None] = asyncio.Queue(MAX_WAITING)

    @property
    def alive(self) -> bool:
        """Whether commands are taken."""
        return self._loop is not None and not self._loop.done()

    @property
    def pid(self) -> int | None:
        """None: no process belongs to it."""
        return None

    async def start(self) -> None:
        """Take commands if none are taken; nothing is asked of the server yet.

        Raises DecdecError when the environment's settings allow no connection.
        """
        if self.alive:
            return
        self._engine = await asyncio.to_thread(self._connected)
        self._loop = asyncio.create_task(self._serve(self._engine))
        await self._events.put(Ready(os.getpid()))

    async def send(self, command: Command) -> None:
        """Take one command. A stop reaches all that came before it. DecdecError when it was not started."""
        if not self.alive:
            raise DecdecError("The server is not connected", "the connection was ended", "start it again")
        match command:
            case Stop():
                self._stop()
            case Quit():
                await self._end()
            case _:
                self._open.append(task := _Task(command))
                self._waiting.put_nowait(task)

    async def events(self) -> AsyncIterator[Event]:
        """Every event in order; the iteration ends when the client is closed."""
        while (event := await self._events.get()) is not None:
            yield event

    async def close(self) -> None:
        """End what runs, and `events()`."""
        await self._end()
        while self._events.full():
            self._events.get_nowait()
        self._events.put_nowait(None)

    async def kill(self) -> None:
        """End what runs now; that is reported as a worker's death is."""
        if self.alive:
            await self._end()
            await self._events.put(Failed("worker", f"The connection to {self._server.host} was ended"))

    def _connected(self) -> RemoteEngine:
        # Takes a moment: a library, and the certificates that this system trusts.
        from runtime.client.remote.connection import Connection

        return RemoteEngine(self._server, Connection(self._server), self._emit)

    async def _end(self) -> None:
        if self._loop is not None:
            self._loop.cancel()
            await asyncio.wait({self._loop})
        if self._engine is not None:
            await self._engine.close()
        self._loop = self._engine = self._work = None
        self._waiting, self._open = asyncio.Queue(), []

    def _stop(self) -> None:
        for task in self._open:
            task.stopped = True
        if self._work is not None:
            self._work.cancel()

    async def _serve(self, engine: RemoteEngine) -> None:
        """One command after the other."""
        while True:
            task = await self._waiting.get()
            if task.stopped and not isinstance(task.command, SetSlowdown):
                await self._emit(engine.failed(task.command, Interrupted()))
            else:
                await self._emit(await self._carry_out(task.command, engine))
            self._open.remove(task)

    async def _carry_out(self, command: Command, engine: RemoteEngine) -> Sequence[Event]:
        """Run a command so that a stop ends it at once; what it ends with."""
        self._work = work = asyncio.create_task(engine.run(command))
        try:
            await asyncio.wait({work})
        finally:
            work.cancel()
            await asyncio.wait({work})
        if work.cancelled():
            return engine.stopped(command)
        error = work.exception()
        return engine.failed(command, error) if error else work.result()

    async def _emit(self, events: Sequence[Event]) -> None:
        for event in events:
            await self._events.put(event)
