"""What each command does with a server."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from runtime.client.remote import failures, limits, models
from runtime.client.remote.answer import RemoteAnswer
from runtime.client.remote.failures import Refused
from runtime.client.remote.meter import RemoteMeter
from runtime.client.remote.request import ChatRequest, characters
from runtime.client.remote.server import Server
from runtime.errors import DecdecError, Interrupted
from runtime.protocol.commands import Command, Generate, Job, Load, Prepare, SetSlowdown, Tune
from runtime.protocol.events import Done, Event, Failed, Loaded

if TYPE_CHECKING:
    from runtime.client.remote.connection import Connection

Emit = Callable[[Sequence[Event]], Awaitable[None]]

# Until a server has counted a prompt: what text of most languages comes to.
TOKENS_PER_CHARACTER = 0.25
MODELS_JOB = "server_models"


class RemoteEngine:
    """A connected server, the model that was chosen there, and the answer that is being written.

    `run` gives the events that a command ends with; what comes before goes to `emit`. A command that was
    cancelled ends with `stopped`, one that raised with `failed`.
    """

    def __init__(self, server: Server, connection: Connection, emit: Emit) -> None:
        self._server, self._connection, self._emit = server, connection, emit
        self._loaded: Loaded | None = None
        self._answer: RemoteAnswer | None = None
        self._without: frozenset[str] = frozenset()
        self._density, self._per_piece = TOKENS_PER_CHARACTER, 1.0

    async def run(self, command: Command) -> Sequence[Event]:
        """Carry out one command."""
        self._answer = None
        match command:
            case Load():
                return await self._load(command)
            case Generate():
                return await self._generate(command)
            case SetSlowdown():
                # Nothing slides here, and nobody needs to hear so: it was said when the model was chosen.
                return [RemoteMeter(self._loaded.context_limit).stats()] if self._loaded else []
            case Job(name=name) if name == MODELS_JOB:
                return [Done(name, await self._offered())]
            case _:
                raise failures.local_only(_title(command))

    def stopped(self, command: Command) -> Sequence[Event]:
        """How a command ends that was stopped: an answer with what came so far."""
        if self._answer is None:
            return self.failed(command, Interrupted())
        return self._answer.end(stopped=True)

    def failed(self, command: Command, error: BaseException) -> Sequence[Event]:
        """How a command ends that failed; the text that came before goes first."""
        if isinstance(error, Refused):
            error = failures.refusal(error, self._server)
        if not isinstance(error, DecdecError):
            why = " ".join(f"{type(error).__name__}: {error}".split())
            error = DecdecError("Something unexpected went wrong", why, "try again")
        rest = self._answer.rest() if self._answer else []
        return [*rest, Failed(job_of(command), error.what, error.why, error.fix, error.code)]

    async def close(self) -> None:
        """End every request."""
        await self._connection.close()

    async def _load(self, command: Load) -> Sequence[Event]:
        started = time.perf_counter()
        self._loaded = None
        found = await models.load(self._connection, self._server, command.model)
        self._loaded = msgspec.structs.replace(found, load_s=time.perf_counter() - started)
        return [self._loaded]

    async def _offered(self) -> dict[str, object]:
        found = await models.offered(self._connection, self._server) or ()
        return {"models": [{"id": model.id, "context": model.context} for model in found]}

    async def _generate(self, command: Generate) -> Sequence[Event]:
        if self._loaded is None:
            raise DecdecError("Nothing can be answered", "no model is chosen", "load one first")
        if not command.messages:
            raise DecdecError("There is nothing to answer", "the conversation has no message")
        guess = round(characters(command.messages) * self._density)
        meter = RemoteMeter(self._loaded.context_limit, guess, self._per_piece)
        request = ChatRequest(command, self._loaded.model, self._without)
        self._answer = answer = RemoteAnswer(self._server, self._loaded, meter, request.continued)
        self._learn(await self._ask(request, answer), meter)
        return answer.end()

    async def _ask(self, request: ChatRequest, answer: RemoteAnswer) -> ChatRequest:
        """Ask until the server takes the question, changed where it must be; the request that it took."""
        while True:
            try:
                await self._read(request, answer)
                return request
            except Refused as refused:
                adapted = request.adapted(refused)
                if adapted is None:
                    raise
                request, answer.dropped = adapted, adapted.dropped

    async def _read(self, request: ChatRequest, answer: RemoteAnswer) -> None:
        async with contextlib.aclosing(self._connection.answer(request.body())) as pieces:
            while not answer.complete:
                try:
                    async with asyncio.timeout(limits.LINGER_S if answer.finished else limits.SILENCE_S):
                        piece = await anext(pieces)
                except StopAsyncIteration:
                    return
                except TimeoutError:
                    if answer.finished:
                        return
                    raise failures.silent(self._server) from None
                await self._emit(answer.push(piece))

    def _learn(self, request: ChatRequest, meter: RemoteMeter) -> None:
        """What the next answer begins with: nobody counts before an answer is whole."""
        self._without, self._per_piece = request.without, meter.per_piece
        if meter.usage.prompt_tokens and not meter.figures.dropped_messages:
            self._density = meter.usage.prompt_tokens / max(characters(request.messages), 1)


def job_of(command: Command) -> str:
    """What a command's events call it."""
    return command.name if isinstance(command, Job) else str(type(command).__struct_config__.tag)


def _title(command: Command) -> str:
    match command:
        case Prepare():
            return "Preparing a model"
        case Tune():
            return "Tuning"
        case _:
            return f"The job {job_of(command)}"
