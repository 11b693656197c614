"""A folder that appears whole or not at all, and never in the place of another."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from runtime.errors import DecdecError
from runtime.store import atomic
from runtime.store.locks import exclusive
from runtime.store.oserrors import translated


@contextmanager
def appearing(folder: Path) -> Iterator[Path]:
    """A new folder to fill, which becomes `folder` when the block ends and vanishes if it raises.

    What a killed run left is removed first. DecdecError unless `folder` is missing or empty.
    """
    key = hashlib.sha256(str(folder).encode()).hexdigest()[:16]
    with exclusive(f"export-{key}", f"An export to {folder}"):
        require_new(folder)
        temporary = folder.with_name(f".{folder.name}.decdec-export")
        with translated(temporary, f"Making {folder}"):
            if temporary.exists():
                shutil.rmtree(temporary)
            temporary.mkdir(parents=True)
        try:
            yield temporary
            with translated(folder, f"Finishing {folder}"):
                _take_place(temporary, folder)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise


def require_new(folder: Path) -> None:
    """DecdecError if something is there that an export would have to replace."""
    what = f"Nothing is exported to {folder}"
    with translated(folder, f"Looking at {folder}"):
        if folder.exists() and not folder.is_dir():
            raise DecdecError(what, "it is a file", "name a new folder")
        if os.path.ismount(folder):
            raise DecdecError(what, "it is the root of a file system", "name a new folder below it")
        if folder.is_dir() and any(folder.iterdir()):
            raise DecdecError(what, "it is not empty, and nothing is overwritten", "name a new folder")


def _take_place(temporary: Path, folder: Path) -> None:
    if folder.is_dir():
        folder.rmdir()
    atomic.sync_folder(temporary)
    os.rename(temporary, folder)
    atomic.sync_folder(folder.parent)
