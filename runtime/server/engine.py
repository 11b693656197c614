"""The engine as the server has it: one worker, kept alive, with one model, writing one answer at a time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from typing import Literal, TypeVar

import msgspec

from runtime.client import WorkerClient
from runtime.errors import DecdecError
from runtime.protocol.commands import LOSSLESS, Command, Load, SetSlowdown, Stop, Tune
from runtime.protocol.events import Done, Event, Failed, Loaded, Ready, Stats
from runtime.server import errors
from runtime.server.line import Order

# A worker that has not ended an answer so long after it was told to does not listen any more.
STOP_GRACE_S = 60.0
# The job of a failure to understand a command at all.
UNREADABLE = "command"
START = SetSlowdown(0.0)
State = Literal["ok", "loading", "failed"]
E = TypeVar("E", Loaded, Done, Stats)


class WorkerDied(DecdecError):
    """The worker's process ended; a new one has nothing in memory."""


class Engine:
    """`load` says how models are loaded, and which is the first. Every event also goes to `on_event`."""

    def __init__(self, load: Load, slowdown_pct: float, on_event: Callable[[Event], None]) -> None:
        self._load, self._slowdown_pct, self._on_event = load, slowdown_pct, on_event
        self._client = WorkerClient()
        # Workers whose end was not heard of yet; whether a command was sent whose end was not.
        self._lives, self._busy = 0, False
        self._position = START
        self._last = load.model
        self.loaded: Loaded | None = None
        self.state: State = "loading"

    async def bring(self, model: str) -> Loaded:
        """Have this model in memory, in a new worker if there is none; raises DecdecError."""
        if self.loaded and self.loaded.model == model and self._usable:
            return self.loaded
        self.state, self.loaded = "loading", None
        try:
            await self._wake()
            # The next model may have no position but 0.
            await self._move(START)
            command = msgspec.structs.replace(self._load, model=model)
            self.loaded = await self._run(command, "load", Loaded)
        finally:
            self.state = "ok" if self.loaded else "failed"
        self._last = model
        return self.loaded

    async def tune(self, model: str) -> Loaded:
        """Measure this machine for a model, and load that again with its table; raises DecdecError."""
        await self._wake()
        await self._run(Tune(model, self._load.base), "tune", Done)
        self.loaded = None
        return await self.bring(model)

    async def answer(self, order: Order, left: asyncio.Event) -> AsyncGenerator[Event, None]:
        """Events of one answer up to its Done, which comes within a token once `left` is set.

        Raises ApiError for an answer that cannot begin or whose worker died, DecdecError for a failed one.
        """
        try:
            loaded = await self.bring(order.model)
        except DecdecError as error:
            raise errors.no_model(error) from error
        if left.is_set():
            return
        try:
            await self._move(self._wanted(order, loaded))
            await self._send(order.generate)
            leaver = asyncio.create_task(self._stop_when(left))
            try:
                async for event in self._events("generate", Done):
                    yield event
            finally:
                leaver.cancel()
        except WorkerDied as error:
            raise errors.crashed(error) from error

    async def recover(self) -> None:
        """After a failure: the last model in memory again, or the first one where that cannot be loaded."""
        for model in dict.fromkeys((self._last, self._load.model)):
            if not self.loaded:
                with contextlib.suppress(DecdecError):
                    await self.bring(model)

    async def close(self) -> None:
        """End the worker."""
        await self._client.close()

    @property
    def _usable(self) -> bool:
        """Whether a worker runs and waits for a command."""
        return self._client.alive and self._lives > 0 and not self._busy

    def _wanted(self, order: Order, loaded: Loaded) -> SetSlowdown:
        """Where the slider stands for an answer; ApiError for a place that this model does not have."""
        slide = order.slide or SetSlowdown(self._slowdown_pct if loaded.path else 0.0)
        if slide.lossless and loaded.base == LOSSLESS:
            return START
        if slide.lossless and not loaded.lossless:
            raise _no_place('slowdown_pct cannot be "lossless" here: INT8-X does not fit in memory too.')
        if slide.pct > 0 and loaded.base == LOSSLESS:
            raise _no_place(f"slowdown_pct can only be 0 here: the base {LOSSLESS} is lossless.")
        if slide.pct > 0 and not loaded.path:
            reason = loaded.untuned_reason.rstrip(".") or "this model is not tuned"
            raise _no_place(f"slowdown_pct can only be 0 here: {reason}; decdec-chat tune measures it.")
        return slide

    async def _wake(self) -> None:
        """Have a worker that waits for a command; one that is out of step is replaced."""
        if self._usable:
            return
        self._forget()
        await self._client.kill()
        await self._client.start()
        self._lives += 1
        async for event in self._client.events():
            # What an earlier worker left in the stream comes first.
            self._note_death(event)
            if isinstance(event, Ready):
                return

    async def _move(self, place: SetSlowdown) -> None:
        if place != self._position:
            await self._run(place, "set_slowdown", Stats)
            self._position = place

    async def _run(self, command: Command, job: str, last: type[E]) -> E:
        await self._send(command)
        async for event in self._events(job, last):
            if isinstance(event, last):
                return event
        raise WorkerDied("The engine was ended")

    async def _send(self, command: Command) -> None:
        self._busy = True
        try:
            await self._client.send(command)
        except DecdecError as error:
            self._forget()
            raise WorkerDied(error.what, error.why, error.fix) from error

    async def _events(self, job: str, last: type[Event]) -> AsyncGenerator[Event, None]:
        """Events up to the `last` one; a failure of this job is raised, one of another job is not its end."""
        async for event in self._client.events():
            self._on_event(event)
            self._note_death(event)
            if isinstance(event, Failed) and event.job in (job, UNREADABLE):
                self._busy = False
                raise DecdecError(event.what, event.why, event.fix, event.code)
            if isinstance(event, last):
                self._busy = False
                yield event
                return
            yield event
        raise WorkerDied("The engine was ended")

    async def _stop_when(self, left: asyncio.Event) -> None:
        await left.wait()
        with contextlib.suppress(DecdecError):
            await self._client.send(Stop())
        await asyncio.sleep(STOP_GRACE_S)
        await self._client.kill()

    def _note_death(self, event: Event) -> None:
        """Raise WorkerDied for the end of the newest worker; each tells of its end once."""
        if isinstance(event, Failed) and event.job == "worker":
            self._lives -= 1
            if not self._lives:
                self._forget()
                raise WorkerDied(event.what, event.why, event.fix)

    def _forget(self) -> None:
        self.loaded, self._position, self._busy = None, START, False


def _no_place(sentence: str) -> errors.ApiError:
    return errors.refused(sentence, "slowdown_pct", "no_such_place")
