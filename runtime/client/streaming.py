"""The front end's side of the worker: an asyncio child process and one stream of events."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from runtime.client import process
from runtime.errors import DecdecError
from runtime.protocol.commands import Command, Quit
from runtime.protocol.events import Event, Failed
from runtime.protocol.lines import decode_event, encode

QUIT_GRACE_S = 3.0
# The stream is bounded, so a front end that cannot keep up slows the pipe instead of filling memory.
MAX_WAITING = 10_000


class WorkerClient:
    """One worker at a time; `events()` goes on across restarts and ends with `close()`.

    A worker that dies is an event: `Failed(job="worker", …)`. Then `start()` gives a new one.
    """

    def __init__(self, beside: bool = False) -> None:
        """`beside`: the worker leaves the processor to whatever else runs."""
        self._beside = beside
        self._process: asyncio.subprocess.Process | None = None
        self._pump: asyncio.Task[None] | None = None
        self._queue: asyncio.Queue[Event | None] = asyncio.Queue(MAX_WAITING)
        self._closing = False

    @property
    def alive(self) -> bool:
        """Whether a worker runs now."""
        return self._process is not None and self._process.returncode is None

    @property
    def pid(self) -> int | None:
        """The worker's process id, None before the first start."""
        return self._process.pid if self._process else None

    async def start(self) -> None:
        """Start a worker if none runs; raises DecdecError if the program cannot be started."""
        if self.alive:
            return
        if self._pump is not None:
            await self._pump
        self._closing = False
        log = process.open_log()
        try:
            self._process = await asyncio.create_subprocess_exec(
                *process.worker_command(),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                limit=process.STREAM_LIMIT,
                **process.spawn_options(),
            )
        except OSError as error:
            failed = process.unstartable(error)
            raise DecdecError(failed.what, failed.why) from error
        finally:
            process.close_log(log)
        if self._beside:
            process.make_way(self._process.pid)
        self._pump = asyncio.create_task(self._read(self._process))

    async def send(self, command: Command) -> None:
        """Send one command; raises DecdecError when no worker runs to take it."""
        try:
            if not self.alive or self._process is None or self._process.stdin is None:
                raise BrokenPipeError
            self._process.stdin.write(encode(command))
            await self._process.stdin.drain()
        except (BrokenPipeError, ConnectionResetError) as error:
            raise DecdecError("The engine is not running", "its process ended", "start it again") from error

    async def events(self) -> AsyncIterator[Event]:
        """Every event of every worker, in order; the iteration ends when the client is closed."""
        while (event := await self._queue.get()) is not None:
            yield event

    async def close(self) -> None:
        """Ask the worker to quit, end it if it does not within a few seconds, and end `events()`."""
        self._closing = True
        if self.alive:
            with contextlib.suppress(DecdecError):
                await self.send(Quit())
            await self._end()
        if self._pump is not None:
            self._pump.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._pump
        self._pump = None
        self._make_room()
        self._queue.put_nowait(None)

    async def kill(self) -> None:
        """End the worker now; its death is reported as an event like any other."""
        if self.alive and self._process is not None:
            self._process.kill()
            await self._process.wait()

    async def _end(self) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), QUIT_GRACE_S)
        except TimeoutError:
            await self.kill()

    async def _read(self, child: asyncio.subprocess.Process) -> None:
        assert child.stdout is not None
        try:
            while line := await child.stdout.readline():
                await self._queue.put(decode_event(line))
        except (ValueError, DecdecError) as error:
            # Nothing after a broken line can be trusted: the worker is replaced, not guessed at.
            await self._queue.put(Failed("worker", "The engine sent something unreadable", str(error)))
            child.kill()
            await child.wait()
            return
        code = await child.wait()
        if not self._closing:
            await self._queue.put(process.death(code))

    def _make_room(self) -> None:
        while self._queue.full():
            self._queue.get_nowait()
