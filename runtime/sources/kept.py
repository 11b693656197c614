"""Folders below the downloads folder in which sources keep what they fetched."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from runtime import locations
from runtime.store.locks import exclusive
from runtime.store.names import slug
from runtime.store.oserrors import translated
from runtime.store.records import delete


def kept_folder(kind: str, identity: str) -> Path:
    """The folder of one thing to download, by kind of source and identity."""
    return locations.downloads() / f"{kind}-{slug(identity)}"


@contextmanager
def alone_with(folder: Path, doing: str = "") -> Iterator[None]:
    """Keep every other process from fetching into such a folder, and from deleting it.

    Raises DecdecError at once if one is about it.
    """
    with exclusive(f"download-{folder.name}", doing or f"Work on the download {folder.name}"):
        yield


def remove_kept(folder: Path) -> int:
    """Delete such a folder if it is there; gives the bytes freed. Raises as `alone_with`."""
    if not folder.is_dir():
        return 0
    with alone_with(folder):
        return delete_kept(folder)


def delete_kept(folder: Path) -> int:
    """The same for who is alone with the folder already."""
    with translated(folder, f"Removing {folder.name}"):
        return delete(folder) if folder.is_dir() else 0
