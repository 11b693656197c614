"""Fetching a wheel from where pip says it is, so that a cut download goes on."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import msgspec

from runtime.download import Address, HttpTransport, RemoteFile, Transport, download
from runtime.download.answers import Answer
from runtime.download.files import partial_path
from runtime.download.http import ClientMaker
from runtime.errors import DecdecError, Interrupted
from runtime.progress import JobContext
from runtime.sources.index_asking import Location

# How long nothing may come before pip is let try, which may know a way that we do not.
PATIENCE_S = 15.0


class _NothingComes(Exception):
    """Patience is at its end, and not one byte came."""


class _Counting:
    """A transport that knows whether anything came."""

    def __init__(self, inner: Transport) -> None:
        self._inner, self.came = inner, False

    @asynccontextmanager
    async def open(self, file: RemoteFile, start: int, etag: str) -> AsyncIterator[Answer]:
        async with self._inner.open(file, start, etag) as answer:
            yield replace(answer, pieces=self._heard(answer.pieces))

    async def close(self) -> None:
        await self._inner.close()

    async def _heard(self, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for piece in pieces:
            self.came = True
            yield piece


@dataclass(slots=True)
class _Watch:
    """Tells a job how many bytes are there; loses patience while nothing comes. `there`: at the start."""

    transport: _Counting
    there: int
    total: int
    note: str
    ctx: JobContext
    _since: float = field(default=0.0, init=False)

    def hear(self, have: int) -> None:
        if self._since == 0.0 and have < self.there:
            self.ctx.progress("verify", have, self.there, "bytes", self.note)
            return
        self._since = self._since or time.monotonic()
        self.ctx.progress("download", min(have, self.total - 1), self.total, "bytes", self.note)
        if not self.transport.came and time.monotonic() - self._since > PATIENCE_S:
            raise _NothingComes


def local_path(location: Location) -> Path | None:
    """The file that a file:// address means, if it can be read here."""
    parts = urlsplit(location.url)
    if parts.scheme != "file":
        return None
    path = Path(url2pathname(f"//{parts.netloc}{parts.path}" if parts.netloc else parts.path))
    try:
        with path.open("rb"):
            return path
    except (OSError, ValueError):
        return None


def fetch(
    location: Location,
    file: RemoteFile,
    target: Path,
    client: ClientMaker,
    note: str,
    ctx: JobContext,
) -> bool:
    """Bring a wheel to `target`, going on with a part that is there. False: nothing came, so pip may try.

    Raises DecdecError when it fails after something came, which stays for the next start.
    """
    file = msgspec.structs.replace(file, sha256=location.sha256)
    address = Address(location.url, server=urlsplit(location.url).hostname or "the package index")
    transport = _Counting(HttpTransport(lambda file: address, client))
    there = _bytes_there(target, file.bytes)
    watch = _Watch(transport, there, file.bytes, note + (" (continued)" if there else ""), ctx)
    try:
        download(file, target, transport, watch.hear)
    except (_NothingComes, DecdecError) as error:
        if transport.came or isinstance(error, Interrupted):
            raise
        return False
    return True


def _bytes_there(target: Path, total: int) -> int:
    try:
        there = partial_path(target).stat().st_size
    except OSError:
        return 0
    return there if there <= total else 0
