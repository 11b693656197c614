"""One process at a time does a piece of work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from runtime import locations
from runtime.errors import DecdecError
from runtime.store import in_use
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
                "another decdec-chat holds its lock",
                "wait for it to end, or stop it",
            ) from error
    try:
        in_use.require_still()
        yield
    finally:
        lock.release()
