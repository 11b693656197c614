"""What answers in a long run: a worker behind the protocol, or a session in this process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from typing import Protocol

import torch

from runtime.client.streaming import WorkerClient
from runtime.engine.opened import LoadedEngine
from runtime.errors import DecdecError
from runtime.generation.engine import Engine
from runtime.generation.session import Session
from runtime.protocol.commands import Generate, Load, SetSlowdown
from runtime.protocol.events import Done, Event, Failed, Loaded


class Speaker(Protocol):
    """A loaded model that answers, in the process `pid`."""

    loaded: Loaded

    @property
    def pid(self) -> int:
        """The process whose memory counts."""
        ...

    def answer(self, command: Generate) -> Iterator[Event]:
        """Every event of one answer, Done the last. Raises DecdecError where it fails."""
        ...

    def move(self, move: SetSlowdown) -> None:
        """Move the slider, also while an answer is written."""
        ...

    def device_bytes(self) -> dict[str, int]:
        """Bytes of device memory: allocated, reserved by torch, in use on the whole device; none on a CPU."""
        ...

    def close(self) -> None:
        """End it."""
        ...


class WorkerSpeaker:
    """A worker process, spoken to as the chat does."""

    def __init__(self, load: Load) -> None:
        """Raises DecdecError where the model cannot be loaded."""
        self._loop = asyncio.new_event_loop()
        self._client = WorkerClient()
        self._loop.run_until_complete(self._client.start())
        self._events = self._client.events()
        self._loop.run_until_complete(self._client.send(load))
        self.loaded = self._loaded()

    @property
    def pid(self) -> int:
        """The worker's."""
        assert self._client.pid is not None
        return self._client.pid

    def answer(self, command: Generate) -> Iterator[Event]:
        """Events up to Done, but those that a move before this answer left behind."""
        self._loop.run_until_complete(self._client.send(command))
        while not isinstance(event := self._next(), Done):
            yield event
        yield event

    def move(self, move: SetSlowdown) -> None:
        """A command like any other."""
        self._loop.run_until_complete(self._client.send(move))

    def device_bytes(self) -> dict[str, int]:
        """A worker's device memory is not seen from outside."""
        return {}

    def close(self) -> None:
        """Ask the worker to leave."""
        self._loop.run_until_complete(self._client.close())
        self._loop.close()

    def _loaded(self) -> Loaded:
        while not isinstance(event := self._next(), Loaded):
            pass
        return event

    def _next(self) -> Event:
        event = self._loop.run_until_complete(anext(self._events))
        if isinstance(event, Failed):
            raise DecdecError(event.what, event.why, event.fix)
        return event


class SessionSpeaker:
    """A session in this process, for models that no store holds."""

    def __init__(self, made: LoadedEngine[Engine]) -> None:
        self.loaded = made.loaded
        self._session = Session(made.engine, made.loaded, made.folder)
        self._moved: SetSlowdown | None = None

    @property
    def pid(self) -> int:
        """This process."""
        return os.getpid()

    def answer(self, command: Generate) -> Iterator[Event]:
        """Events of one answer."""
        return self._session.answer(command, self)

    def move(self, move: SetSlowdown) -> None:
        """For the next token."""
        self._moved = move

    def stopped(self) -> bool:
        """Nobody stops an answer here."""
        return False

    def slowdown(self) -> SetSlowdown | None:
        """The newest position, once."""
        move, self._moved = self._moved, None
        return move

    def device_bytes(self) -> dict[str, int]:
        """By torch's and by the driver's count."""
        if not torch.cuda.is_available():
            return {}
        free, total = torch.cuda.mem_get_info()
        counted = torch.cuda.memory_allocated(), torch.cuda.memory_reserved(), total - free
        return dict(zip(("allocated", "reserved", "on the device"), counted, strict=True))

    def close(self) -> None:
        """Nothing of its own is open."""
