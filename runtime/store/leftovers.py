"""What lies in the store and is no whole model: damaged ones, and work that was broken off."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from runtime import locations
from runtime.errors import DecdecError
from runtime.store import folders, manifest
from runtime.store.locks import exclusive
from runtime.store.names import checked
from runtime.store.oserrors import translated
from runtime.store.records import delete, open_folder


@dataclass(frozen=True, slots=True)
class Leftover:
    """A model that cannot be used as it lies there. `record`: what is known of its source; may be empty."""

    name: str
    state: Literal["damaged", "half-made"]
    bytes: int
    record: dict[str, Any]


def leftovers() -> list[Leftover]:
    """Every model that is not whole, by name."""
    with translated(locations.models(), "Listing the local models"):
        found = [left for name in folders.names() if (left := _leftover(name)) is not None]
    return sorted(found, key=lambda leftover: leftover.name.lower())


def half_made_bytes(name: str) -> int:
    """Bytes of what was made so far of a model that is not whole yet."""
    return sum(tree_bytes(folder) for folder in _half_made(name))


def discard_half_made(name: str) -> int:
    """Delete what was made so far of a model; a whole one of that name stays. Gives the bytes freed."""
    with (
        exclusive(f"model-{checked(name)}", f"Work on {name}"),
        translated(folders.staging(name), f"Removing what was made of {name}"),
    ):
        return sum(delete(folder) for folder in _half_made(name) if folder.is_dir())


def tree_bytes(folder: Path) -> int:
    """Size of all files below a folder; files and folders that vanish meanwhile do not count."""
    total = 0
    # Unlike Path.rglob, it goes on where a folder has gone before it was looked into.
    for parent, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(parent, name)).st_size
    return total


def _half_made(name: str) -> tuple[Path, ...]:
    return folders.staging(name), folders.quarantine(name)


def _leftover(name: str) -> Leftover | None:
    final, staging = folders.final(name), folders.staging(name)
    if final.is_dir():
        try:
            open_folder(final)
        except DecdecError:
            return Leftover(name, "damaged", tree_bytes(final), _recorded(final))
        return None
    return Leftover(name, "half-made", tree_bytes(staging), _identity(staging))


def _recorded(folder: Path) -> dict[str, Any]:
    try:
        return manifest.read(folder).record
    except DecdecError:
        return _identity(folder)


def _identity(folder: Path) -> dict[str, Any]:
    """The source's record that a build notes beside its files."""
    try:
        known = msgspec.json.decode(folders.identity(folder), type=dict[str, Any])
    except (OSError, msgspec.DecodeError, RecursionError):
        return {}
    source = known.get("source")
    return source if isinstance(source, dict) else {}
