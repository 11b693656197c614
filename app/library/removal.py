"""Deleting models and what was fetched for them, and what that frees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from app.library.pulls import Pull
from app.library.rows import LeftoverRow, ReadyRow
from runtime import store
from runtime.errors import DecdecError
from runtime.sources import resolve
from runtime.sources.kept import alone_with, delete_kept
from runtime.sources.recorded import kept_of
from runtime.store.leftovers import discard_half_made, half_made_bytes, tree_bytes


@dataclass(frozen=True, slots=True)
class Sizes:
    """Bytes that deleting frees: the model's own, and of its source what was downloaded."""

    model: int
    download: int


def sizes(row: ReadyRow | LeftoverRow) -> Sizes:
    """What can be freed of a row."""
    folder = _download(row)
    model = row.record.bytes if isinstance(row, ReadyRow) else row.leftover.bytes
    return Sizes(model, tree_bytes(folder) if folder else 0)


def remove(row: ReadyRow | LeftoverRow, download: bool) -> int:
    """Delete a model, with `download` what was fetched for it too; gives the bytes freed. DecdecError."""
    return _with_download(lambda: store.remove(row.name), _download(row) if download else None)


def bytes_of_pull(pull: Pull) -> int:
    """What a pull has brought and made so far."""
    folder = _kept_for(pull)
    return half_made_bytes(pull.name) + (tree_bytes(folder) if folder else 0)


def discard(pull: Pull) -> int:
    """Delete what a pull has brought and made; a whole model of that name stays. Raises DecdecError."""
    return _with_download(lambda: discard_half_made(pull.name), _kept_for(pull))


def _with_download(removed: Callable[[], int], folder: Path | None) -> int:
    """Nothing goes while another instance fetches into the folder: what is there would be lost to it."""
    if folder is None:
        return removed()
    with alone_with(folder):
        return removed() + delete_kept(folder)


def _download(row: ReadyRow | LeftoverRow) -> Path | None:
    return kept_of(row.record.record if isinstance(row, ReadyRow) else row.leftover.record)


def _kept_for(pull: Pull) -> Path | None:
    """None too where the source is gone: a file of the user's, which is never ours to delete."""
    try:
        return kept_of(resolve(pull.source).record)
    except DecdecError:
        return None
