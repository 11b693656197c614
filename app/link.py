"""The one consumer of the engine's events: keeps a worker alive and hands its events on in order."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Protocol

from runtime.client import WorkerClient
from runtime.errors import DecdecError
from runtime.protocol.commands import Command, Quit
from runtime.protocol.events import Event, Failed, Progress, Ready

# A worker that dies this often without having done anything would die again.
MAX_DEATHS = 3
# A worker has this long to end when it is told to.
HOLD_S = 20.0
HOLD_POLL_S = 0.02
TOLD_S = 1.0


class EngineClient(Protocol):
    """What answers: a worker of this machine, or a server."""

    @property
    def alive(self) -> bool:
        """Whether commands are taken."""
        ...

    async def start(self) -> None:
        """Take commands if none are taken; raises DecdecError when that cannot be."""
        ...

    async def send(self, command: Command) -> None:
        """Send one command; raises DecdecError when none are taken."""
        ...

    def events(self) -> AsyncIterator[Event]:
        """Every event in order, until it is closed."""
        ...

    async def close(self) -> None:
        """End what runs, and `events()`."""
        ...


class EngineLink:
    """Starts the client, by default a worker, forwards its events, and starts it anew when it dies.

    `on_event` is called in the event loop, in order; `Ready` comes again after every restart.
    """

    def __init__(self, on_event: Callable[[Event], None], client: EngineClient | None = None) -> None:
        self._client = client or WorkerClient()
        self._on_event = on_event
        self._outbox: asyncio.Queue[Command] = asyncio.Queue()
        self._ready = asyncio.Event()
        self._deaths = 0
        self._held: asyncio.Event | None = None

    @property
    def gave_up(self) -> bool:
        """Whether it died too often to be started again unasked."""
        return self._deaths >= MAX_DEATHS

    @property
    def alive(self) -> bool:
        """Whether a worker runs now."""
        return self._client.alive

    def post(self, command: Command) -> None:
        """Queue a command; it is sent in order, as soon as a worker is up."""
        self._outbox.put_nowait(command)

    async def run(self) -> None:
        """Until `close`: start the worker, send what is queued, forward what it says."""
        sender = asyncio.create_task(self._send_queued())
        try:
            await self._start()
            async for event in self._client.events():
                if self._held is not None and _is_death(event):
                    self._ready.clear()
                    self._held.set()
                    continue
                self._note(event)
                self._on_event(event)
                if _is_death(event) and not self.gave_up:
                    await self._start()
        finally:
            sender.cancel()

    async def restart(self) -> None:
        """Start again after it was given up, or held."""
        self._deaths, self._held = 0, None
        await self._start()

    async def hold(self) -> None:
        """End the worker, unreported, and start none until `restart`.

        Raises DecdecError when it does not end; then it goes on as before.
        """
        self._held = asyncio.Event()
        if not self.alive:
            return
        try:
            await self._client.send(Quit())
            await asyncio.wait_for(self._ended(self._held), HOLD_S)
        except TimeoutError as error:
            self._held = None
            raise DecdecError(
                "The engine does not stop", "its work has no safe point yet", "try again"
            ) from error

    async def _ended(self, told: asyncio.Event) -> None:
        """A worker's death is told after it; a server's end is not told at all."""
        while self._client.alive:
            await asyncio.sleep(HOLD_POLL_S)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(told.wait(), TOLD_S)

    async def close(self) -> None:
        """End the worker and the forwarding."""
        await self._client.close()

    async def _send_queued(self) -> None:
        while True:
            command = await self._outbox.get()
            await self._ready.wait()
            # A worker that just died reports that itself, in order with its other events.
            with contextlib.suppress(DecdecError):
                await self._client.send(command)

    async def _start(self) -> None:
        try:
            await self._client.start()
        except DecdecError as error:
            self._deaths = MAX_DEATHS
            self._on_event(Failed("worker", error.what, error.why, error.fix))

    def _note(self, event: Event) -> None:
        if isinstance(event, Ready):
            self._ready.set()
        elif _is_death(event):
            self._ready.clear()
            self._drop_queued()
            self._deaths += 1
        elif not isinstance(event, Progress):
            self._deaths = 0

    def _drop_queued(self) -> None:
        """What was meant for the dead worker is not for the next one."""
        while not self._outbox.empty():
            self._outbox.get_nowait()


def _is_death(event: Event) -> bool:
    return isinstance(event, Failed) and event.job == "worker"
