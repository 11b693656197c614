"""Folders for a while, where the system keeps such."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from runtime.errors import DecdecError
from runtime.store.oserrors import translated


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """An empty folder that goes with the block; what cannot be removed then stays, and nothing is raised.

    DecdecError where none can be made.
    """
    place = _place()
    with translated(place, "Making a temporary folder"):
        folder = Path(tempfile.mkdtemp(prefix="decdec-", dir=place))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _place() -> Path:
    try:
        return Path(tempfile.gettempdir())
    # Every place that the system names takes no file.
    except FileNotFoundError as error:
        raise DecdecError(
            "Making a temporary folder failed",
            f"{error.strerror or error}",
            "free some space, or set TMPDIR to a folder you can write",
        ) from error
