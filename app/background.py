"""Work beside the chat: every piece in a worker process of its own, which is there only while it works."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection, Coroutine
from typing import Any

from app.library import records, removal
from app.library.pulls import STOPPED, Pull, Pulls, PullState
from runtime.client import WorkerClient
from runtime.errors import DecdecError
from runtime.protocol.commands import Command, Prepare, Stop
from runtime.protocol.events import Done, Event, Failed, Progress

Listener = Callable[[Event], None]
# What `known` calls the newest report about the machine.
MACHINE = "machine"
STOPPED_EARLY = Failed("worker", "Stopped", code=STOPPED)


def ignore(event: Event) -> None:
    """For events that nobody waits for."""


class BackgroundWorker:
    """One process for one run of commands. It leaves the processor to the engine that answers."""

    def __init__(self) -> None:
        self._client = WorkerClient(beside=True)
        self._stopped = False

    async def run(self, *commands: Command, on_event: Listener = ignore) -> Done | Failed:
        """Run commands one after the other; the last one's Done, or the first Failed.

        Every event goes to `on_event`, in order. The process is gone when this returns, also by cancellation.
        """
        last: Done | Failed = STOPPED_EARLY
        try:
            await self._client.start()
            for command in commands:
                last = await self._run(command, on_event)
                if isinstance(last, Failed):
                    break
        except DecdecError as error:
            last = Failed("worker", error.what, error.why, error.fix)
        finally:
            await self._client.close()
        return last

    async def stop(self) -> None:
        """Ask the running command to end at its next safe point."""
        self._stopped = True
        with contextlib.suppress(DecdecError):
            await self._client.send(Stop())

    async def close(self) -> None:
        """End the process; what was on its way to disk is taken up by the next run."""
        await self._client.close()

    async def _run(self, command: Command, on_event: Listener) -> Done | Failed:
        await self._client.send(command)
        if self._stopped:
            await self.stop()
        async for event in self._client.events():
            on_event(event)
            if isinstance(event, Done | Failed):
                return event
        return STOPPED_EARLY


class Background:
    """The pulls, one after the other, and short looks at things beside them.

    `on_change` is called after every change of the pulls, with the one that has just ended, or None.
    """

    def __init__(self, on_change: Callable[[Pull | None], None]) -> None:
        self.pulls = Pulls(records.unfinished())
        for pull in self.pulls:
            pull.here = removal.bytes_of_pull(pull)
        # Results of jobs that are dear and stay true as long as a model's files do.
        self.known: dict[str, dict[str, Any]] = {}
        self._on_change = on_change
        self._workers: set[BackgroundWorker] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._fetching: BackgroundWorker | None = None
        self._closed = False

    async def run(self, *commands: Command, on_event: Listener = ignore) -> Done | Failed:
        """Run commands beside everything else, as `BackgroundWorker.run`."""
        return await self._run(BackgroundWorker(), *commands, on_event=on_event)

    async def close(self) -> None:
        """End every process. Pulls that are not ready are known to the next start."""
        self._closed = True
        await asyncio.gather(*(worker.close() for worker in tuple(self._workers)))
        await asyncio.gather(*tuple(self._tasks), return_exceptions=True)

    # Pulls

    def fetch(self, name: str, source: str) -> str:
        """Queue a model, or let it go on; gives a sentence about trouble with noting it, empty for none."""
        problem = records.keep(self.pulls.add(name, source))
        self._advance()
        return problem

    def pause(self, name: str) -> None:
        """Let a pull rest; what is on disk is kept."""
        self._leave(self.pulls.pause(name))

    def cancel(self, name: str) -> None:
        """Forget a pull. What it made stays on disk until somebody deletes it."""
        pull = self.pulls.find(name)
        must_stop = self.pulls.cancel(name)
        if pull is not None and not pull.active:
            self._ended(pull)
        self._leave(must_stop)

    def forget_ready(self, names: Collection[str]) -> None:
        """These models are whole: nothing is left to fetch of them."""
        for pull in self.pulls.drop(names):
            records.forget(pull)

    def _leave(self, must_stop: bool) -> None:
        if must_stop and self._fetching is not None:
            self._spawn(self._fetching.stop())
        self._advance()

    def _advance(self) -> None:
        if self._fetching is None and not self._closed and (command := self.pulls.start()):
            self._fetching = BackgroundWorker()
            self._spawn(self._fetch(self._fetching, command))
        self._on_change(None)

    async def _fetch(self, worker: BackgroundWorker, command: Prepare) -> None:
        outcome = await self._run(worker, command, on_event=self._progressed)
        self._fetching = None
        if not self._closed and (pull := self.pulls.end(outcome)):
            self._ended(pull)
            self._advance()

    def _progressed(self, event: Event) -> None:
        if isinstance(event, Progress):
            self.pulls.push(event)
            self._on_change(None)

    def _ended(self, pull: Pull) -> None:
        pull.here = removal.bytes_of_pull(pull)
        refused = pull.refused and not pull.here
        if refused or pull.state in (PullState.READY, PullState.CANCELLED):
            records.forget(pull)
        if refused and pull.imported:
            self.pulls.drop([pull.name])
        self._on_change(pull)

    # Processes

    async def _run(self, worker: BackgroundWorker, *commands: Command, on_event: Listener) -> Done | Failed:
        if self._closed:
            return STOPPED_EARLY
        self._workers.add(worker)
        try:
            return await worker.run(*commands, on_event=on_event)
        finally:
            self._workers.discard(worker)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Begin something whose end nobody waits for but `close`."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
