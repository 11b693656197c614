"""What a killed process left in the store, put right before anybody looks at it."""

from __future__ import annotations

import contextlib
import os
import shutil
from functools import cache
from pathlib import Path

from runtime import locations
from runtime.errors import DecdecError
from runtime.store import atomic, folders, move_record
from runtime.store.locks import exclusive


def settle() -> None:
    """End or undo a cut move or replacement of models, and delete what nobody will go on with.

    Never raises: what is being worked on at this moment, or cannot be changed, stays as it is.
    """
    move_record.settle(locations.home())
    for name in _unsettled():
        with contextlib.suppress(DecdecError, OSError), exclusive(f"model-{name}", f"Work on {name}"):
            recover(name)
    _sweep(locations.home())


def recover(name: str) -> None:
    """Undo the replacement of a model, or end its removal, where a crash cut that in two. Raises OSError.

    Call it with the lock of the model held.
    """
    final, old, removed = folders.final(name), folders.old(name), folders.removed(name)
    if old.exists() and not final.exists():
        os.rename(old, final)
        atomic.sync_folder(final.parent)
    for leftover in (old, removed):
        # A person may have laid a model elsewhere and a link here; what it leads to is theirs.
        if leftover.is_symlink():
            leftover.unlink()
        elif leftover.exists():
            shutil.rmtree(leftover)


def _unsettled() -> set[str]:
    try:
        return folders.unsettled()
    except OSError:
        return set()


@cache
def _sweep(home: Path) -> None:
    """Once in a process: small files that were being written. A half-made model's go when it goes on."""
    for folder in (home, home / "pulls", home / "profiles", *(home / "downloads").glob("*")):
        atomic.sweep(folder)
