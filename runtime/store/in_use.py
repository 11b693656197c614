"""Who works with the folder of models: engines hold a place while they live, and a move needs all of them.

The order makes it safe: an engine takes its place and then looks for a move, a move is declared and then
looks for engines. The operating system frees what a dead process held.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from runtime import locations
from runtime.errors import DecdecError
from runtime.store.oserrors import translated

if TYPE_CHECKING:
    from filelock import BaseFileLock

PLACES = 64
MOVE = "move.lock"
# Two that look for a move at the same moment get in each other's way for less than this.
LOOK_S = 0.3
_place: BaseFileLock | None = None


def take_part() -> None:
    """Hold a place as long as this process lives. DecdecError while the models are being moved.

    A folder in which nothing can be locked is used all the same.
    """
    global _place
    if _place is None:
        with contextlib.suppress(OSError, NotImplementedError):
            _place = _free_place(locations.locks())
    try:
        require_still()
    except DecdecError:
        if _place is not None:
            _place.release()
            _place = None
        raise


def require_still() -> None:
    """Raise DecdecError while the models are being moved."""
    path = locations.locks() / MOVE
    if not path.exists():
        return
    try:
        lock = _try(path, LOOK_S)
    except (OSError, NotImplementedError):
        # A disk that can only be read, or cannot lock: nobody moves anything there.
        return
    if lock is None:
        raise DecdecError("The models are being moved to another folder", "", "wait for that to end")
    lock.release()


@contextlib.contextmanager
def nobody_else(folder: Path) -> Iterator[None]:
    """Declare a move and hold every lock of a folder of locks; DecdecError when somebody has one."""
    with translated(folder, "Taking a lock"), contextlib.ExitStack() as held:
        folder.mkdir(parents=True, exist_ok=True)
        others = (path for path in sorted(folder.glob("*.lock")) if path.name != MOVE)
        for path in (folder / MOVE, *others):
            lock = _try(path)
            if lock is None:
                raise DecdecError(
                    "The models cannot be moved now", _who(path.stem), "wait for that, or end it"
                )
            held.callback(lock.release)
        yield


def _who(name: str) -> str:
    if name.startswith("engine-"):
        return "another decdec-chat, or fetching beside the chat, works with them"
    if name == Path(MOVE).stem:
        return "another decdec-chat moves them"
    return f"{name.removeprefix('model-')} is being worked on"


def _free_place(folder: Path) -> BaseFileLock | None:
    folder.mkdir(parents=True, exist_ok=True)
    tried = (_try(folder / f"engine-{index}.lock") for index in range(PLACES))
    return next((lock for lock in tried if lock is not None), None)


def _try(path: Path, timeout: float = 0.0) -> BaseFileLock | None:
    """The lock, held; None when somebody else has it."""
    from filelock import FileLock, Timeout

    lock = FileLock(path)
    try:
        lock.acquire(timeout=timeout, poll_interval=0.02)
    except Timeout:
        return None
    return lock
