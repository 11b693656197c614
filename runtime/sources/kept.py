"""Folders below the downloads folder in which sources keep what they fetched."""

from __future__ import annotations

from pathlib import Path

from runtime import locations
from runtime.store.names import slug
from runtime.store.oserrors import translated
from runtime.store.records import delete


def kept_folder(kind: str, identity: str) -> Path:
    """The folder of one thing to download, by kind of source and identity."""
    return locations.downloads() / f"{kind}-{slug(identity)}"


def remove_kept(folder: Path) -> int:
    """Delete such a folder if it is there; gives the bytes freed."""
    with translated(folder, f"Removing {folder.name}"):
        return delete(folder) if folder.is_dir() else 0
