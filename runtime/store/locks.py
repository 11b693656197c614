"""One process at a time does a piece of work."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from runtime import locations
from runtime.errors import DecdecError
from runtime.store import in_use
from runtime.store.atomic import process_exists
from runtime.store.oserrors import translated


@contextmanager
def exclusive(name: str, doing: str) -> Iterator[None]:
    """Hold the lock file `name` (a safe slug); raises DecdecError at once if another process has it.

    The operating system frees the lock when its holder dies, so a crash never leaves one behind.
    """
    from filelock import FileLock, Timeout  # heavy to import, and listing models needs no lock

    path = locations.locks() / f"{name.lower()}.lock"
    lock = FileLock(path)
    with translated(path, "Taking a lock"):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=0)
        except Timeout as error:
            raise DecdecError(
                f"{doing} is already going on",
                f"another decdec-chat{_process(path)} holds its lock",
                "wait for it to end, or stop it",
            ) from error
    try:
        _sign(path)
        in_use.require_still()
        yield
    finally:
        lock.release()


def _sign(path: Path) -> None:
    """Write down who holds a lock: beside it, for whoever tries to take it empties the file itself."""
    with contextlib.suppress(OSError):
        path.with_suffix(".pid").write_text(str(os.getpid()))


def _process(path: Path) -> str:
    """Who holds a lock, in words; empty where that is not known."""
    try:
        pid = int(path.with_suffix(".pid").read_text())
    except (OSError, ValueError):
        return ""
    return f" (process {pid})" if process_exists(pid) else ""
