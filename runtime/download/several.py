"""Several files at once: largest first, one progress for all, the first failure stops the rest."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from runtime.download.fetching import Fetch, Wait
from runtime.download.files import RemoteFile, check_distinct, is_there, missing_bytes
from runtime.download.limits import Limits
from runtime.download.partial import Partial
from runtime.download.running import run
from runtime.download.transport import Transport
from runtime.progress import JobContext


def download(
    file: RemoteFile,
    target: Path,
    transport: Transport,
    on_bytes: Callable[[int], None],
    limits: Limits | None = None,
    wait: Wait = asyncio.sleep,
) -> None:
    """Bring one file to `target`, continuing a partial one; `on_bytes` hears how many bytes are there.

    It hears so about every 0.1 s in this thread, also while nothing comes; an exception of it stops the
    download, and what is there stays. Raises UnreachableError after attempts that brought
    nothing, DecdecError for everything else.
    """
    partial = Partial(file, target)
    try:
        partial.open(lambda count: on_bytes(partial.have))
        fetch = Fetch(partial, transport, limits or Limits(), wait)
        run(_all([fetch], transport, 1), lambda: on_bytes(partial.have))
    finally:
        partial.close()


def download_all(
    files: Iterable[RemoteFile],
    folder: Path,
    transport: Transport,
    ctx: JobContext,
    limits: Limits | None = None,
    wait: Wait = asyncio.sleep,
) -> None:
    """Bring files into a folder; those that are there are not fetched again. Errors as `download`.

    Progress: the step `verify` while parts that are there are read again, then `download`; in bytes.
    """
    wanted = sorted(files, key=lambda file: file.bytes, reverse=True)
    check_distinct(wanted, folder.name)
    partials = [Partial(file, folder / file.name) for file in wanted if not is_there(file, folder)]
    total = sum(file.bytes for file in wanted)
    there = total - sum(partial.file.bytes for partial in partials)
    limits = limits or Limits()
    try:
        _take_up(partials, ctx)
        fetches = [Fetch(partial, transport, limits, wait) for partial in partials]

        told = -1

        def tick() -> None:
            nonlocal told
            ctx.check()
            done = there + sum(partial.have for partial in partials)
            # The last report always goes out, so it is made once.
            if not told == done == total:
                told = done
                ctx.progress("download", done, total, "bytes", _note(fetches))

        tick()
        run(_all(fetches, transport, limits.connections), tick)
    finally:
        for partial in partials:
            partial.close()


def _take_up(partials: Sequence[Partial], ctx: JobContext) -> None:
    """Open the parts that are there, and read them again for their hashes."""
    begun = [partial for partial in partials if partial.path.exists()]
    total = sum(part.file.bytes - missing_bytes(part.file, part.target.parent) for part in begun)
    done = 0
    for partial in begun:

        def on_piece(count: int, name: str = partial.file.name) -> None:
            nonlocal done
            done += count
            ctx.progress("verify", min(done, total), total, "bytes", name)

        partial.open(on_piece)


async def _all(fetches: Sequence[Fetch], transport: Transport, connections: int) -> None:
    """Run fetches in their order, a few at a time; the first that fails ends all."""
    queue = iter(fetches)

    async def work() -> None:
        for fetch in queue:
            await fetch.run()

    workers = [asyncio.create_task(work()) for _ in range(min(connections, len(fetches)))]
    try:
        for finished in asyncio.as_completed(workers):
            await finished
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        await transport.close()


def _note(fetches: Sequence[Fetch]) -> str:
    """What is waited for, else the largest file that is on its way, and how many more."""
    waiting = next((fetch.note for fetch in fetches if fetch.note), "")
    if waiting:
        return waiting
    under_way = [fetch.partial.file.name for fetch in fetches if fetch.partial.is_open and fetch.partial.have]
    more = f" and {len(under_way) - 1} more" if len(under_way) > 1 else ""
    return f"{under_way[0]}{more}" if under_way else ""
