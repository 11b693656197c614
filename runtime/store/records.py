"""The models that are there: listing, looking up, removing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from runtime import locations
from runtime.errors import DecdecError
from runtime.store import atomic, folders, manifest, settling
from runtime.store.locks import exclusive
from runtime.store.names import near, offer, slug
from runtime.store.oserrors import translated


@dataclass(frozen=True, slots=True)
class ModelRecord:
    """A whole local model. `record` is what its maker wrote down: source, settings, sizes."""

    name: str
    state: Literal["ready"]
    bytes: int
    source: str
    bits_per_weight: float
    path: Path
    record: dict[str, Any]


def models() -> list[ModelRecord]:
    """Every whole model, by name; half-made and damaged ones are left out."""
    settling.settle()
    with translated(locations.models(), "Listing the local models"):
        candidates = folders.published()
    records = [record for folder in candidates if (record := _whole(folder)) is not None]
    return sorted(records, key=lambda record: record.name.lower())


def find(name: str) -> ModelRecord:
    """The whole model of that name, case forgiven; raises DecdecError that says what is wrong or near."""
    settling.settle()
    with translated(locations.models(), "Looking for a model"):
        known = {folder.name for folder in folders.published()}
    match = _match(name, known)
    if match is None:
        raise _unknown(name)
    return open_folder(folders.final(match))


def recorded(name: str) -> dict[str, Any]:
    """What the maker of a model wrote down, files missing or not; DecdecError without a manifest."""
    return manifest.read(folders.final(name)).record


def open_folder(folder: Path) -> ModelRecord:
    """The record of a model's folder; raises DecdecError unless every file is there with its size."""
    content = manifest.read(folder)
    for name, entry in content.files.items():
        if not has_size(folder / name, entry.bytes):
            raise damaged(folder.name, f"{name} is missing or has a wrong size")
    source, bits = content.record["source"], float(content.record["bits_per_weight"])
    return ModelRecord(folder.name, "ready", content.total_bytes, source, bits, folder, content.record)


def remove(name: str) -> int:
    """Delete a model with everything half-made or quarantined of it; gives the bytes freed."""
    with translated(locations.models(), "Looking for a model"):
        match = _match(name, folders.names())
    if match is None:
        raise _unknown(name)
    with (
        exclusive(f"model-{match}", f"Work on {match}"),
        translated(folders.final(match), f"Removing {match}"),
    ):
        settling.recover(match)
        beside = [folder for folder in folders.all_of(match)[1:] if folder.is_dir()]
        return sum(map(delete, beside)) + _remove_whole(match)


def _remove_whole(name: str) -> int:
    """Take a model out of the list by one rename, so that a kill leaves all of it or nothing."""
    final, removed = folders.final(name), folders.removed(name)
    if not final.is_dir():
        return 0
    os.rename(final, removed)
    atomic.sync_folder(final.parent)
    return delete(removed)


def delete(folder: Path) -> int:
    """Remove a folder of the store; gives the bytes its files had. Raises OSError.

    Of a link to a folder only the link goes, which frees nothing: what it leads to was put there by a person.
    """
    if folder.is_symlink():
        folder.unlink()
        return 0
    size = sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())
    shutil.rmtree(folder)
    return size


def has_size(path: Path, size: int) -> bool:
    """Whether a regular file of exactly that size is there."""
    try:
        return path.is_file() and path.stat().st_size == size
    except OSError:
        return False


def damaged(name: str, why: str) -> DecdecError:
    """The error for a model that must be made again in part."""
    return DecdecError(
        f"The model {name} is damaged", why, f"run decdec-chat pull {name}: only what is bad is made again"
    )


def _whole(folder: Path) -> ModelRecord | None:
    try:
        return open_folder(folder)
    except DecdecError:
        return None


def _match(name: str, known: Iterable[str]) -> str | None:
    wanted = slug(name)
    by_likeness = {other.lower(): other for other in known}
    return wanted if wanted in known else by_likeness.get(wanted.lower())


def _unknown(name: str) -> DecdecError:
    hint = offer(near(name, [record.name for record in models()]))
    return DecdecError(f"There is no local model {name!r}", "", hint or "get it with decdec-chat pull")
