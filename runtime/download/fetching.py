"""One file until it is whole and right: again after a cut, anew after a change, given up in one sentence."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from runtime.download.answers import Answer
from runtime.download.errors import ChangedError, StalledError, UnreachableError
from runtime.download.limits import Attempts, Limits
from runtime.download.partial import Partial
from runtime.download.transport import Transport
from runtime.errors import DecdecError

Wait = Callable[[float], Awaitable[None]]


@dataclass(slots=True)
class Fetch:
    """A file being fetched into a Partial, opened or not. `note`: what it waits for, empty while bytes come.

    A changed file is begun anew once, a damaged one fetched again once.
    """

    partial: Partial
    transport: Transport
    limits: Limits = field(default_factory=Limits)
    wait: Wait = asyncio.sleep
    note: str = field(default="", init=False)
    _sha256: str = field(default="", init=False)
    _begun_anew: bool = field(default=False, init=False)

    async def run(self) -> None:
        """Raises UnreachableError or DecdecError; what is there stays, unless it was wrong."""
        if not self.partial.is_open:
            self.partial.open()
        await self._fill()
        if self._wrong():
            self.partial.restart()
            await self._fill()
            if why := self._wrong():
                self.partial.remove()
                raise _arrived_damaged(self.partial.file.name, why)
        # In a thread: of a large file it takes its time.
        await asyncio.to_thread(self.partial.sync)
        self.partial.finish()

    def _wrong(self) -> str:
        return self.partial.wrong_hash(self._sha256)

    async def _fill(self) -> None:
        attempts = Attempts(self.limits, self.partial.have)
        while self.partial.have < self.partial.file.bytes:
            try:
                await self._attempt()
            except ChangedError:
                if self._begun_anew:
                    raise
                self._begun_anew = True
                self.partial.restart()
            except UnreachableError as error:
                await self._rest(attempts.wait_after(error, self.partial.have), error.why)

    async def _rest(self, seconds: float, why: str) -> None:
        self.note = f"next attempt in {seconds:.0f} s: {why}"
        await self.wait(seconds)
        self.note = ""

    async def _attempt(self) -> None:
        partial = self.partial
        async with AsyncExitStack() as stack:
            answer = await self._answer(stack)
            if answer.start not in (0, partial.have):
                raise ChangedError(self._failed, f"asked from byte {partial.have}, got from {answer.start}")
            anew, self._sha256 = answer.start == 0, answer.sha256
            async for piece in _paced(answer.pieces, self.limits, self._failed):
                # Not before something came: what is here is worth more than an answer without content.
                if anew:
                    partial.restart(answer.etag)
                    anew = False
                if partial.have + len(piece) > partial.file.bytes:
                    raise ChangedError(self._failed, f"more than its {partial.file.bytes} bytes arrived")
                partial.append(piece)
        if partial.have < partial.file.bytes:
            raise UnreachableError(self._failed, "the connection ended early", "start again: it goes on")

    async def _answer(self, stack: AsyncExitStack) -> Answer:
        partial = self.partial
        try:
            async with asyncio.timeout(self.limits.answer_s):
                opened = self.transport.open(partial.file, partial.have, partial.etag)
                return await stack.enter_async_context(opened)
        except TimeoutError as error:
            why = f"no answer within {self.limits.answer_s:.0f} s"
            raise UnreachableError(self._failed, why, "check the network and start again") from error

    @property
    def _failed(self) -> str:
        return f"Downloading {self.partial.file.name} failed"


async def _paced(pieces: AsyncIterator[bytes], limits: Limits, failed: str) -> AsyncIterator[bytes]:
    """The pieces as long as enough of them come; StalledError when they do not."""
    waited, came = 0.0, 0
    while True:
        enough, asked = came >= limits.window_bytes, time.monotonic()
        try:
            async with asyncio.timeout(limits.window_s - (0.0 if enough else waited)):
                piece = await anext(pieces, None)
        except TimeoutError as error:
            why = f"hardly anything came for {limits.window_s:.0f} s"
            raise StalledError(failed, why, "check the network and start again: it goes on") from error
        if piece is None:
            return
        waited, came = waited + time.monotonic() - asked, came + len(piece)
        if waited >= limits.window_s and came >= limits.window_bytes:
            waited, came = 0.0, 0
        yield piece


def _arrived_damaged(name: str, why: str) -> DecdecError:
    return DecdecError(
        f"{name} arrived damaged", f"twice {why}", "it was removed; start again to download it anew"
    )
