"""Checking a model's files against its manifest; what is bad leaves the model."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from runtime.progress import JobContext
from runtime.store import folders, manifest
from runtime.store.hashing import sha256_of
from runtime.store.manifest import FileEntry
from runtime.store.oserrors import translated
from runtime.store.records import ModelRecord, damaged, has_size


def verify_files(record: ModelRecord, quick: bool, ctx: JobContext | None = None) -> None:
    """Compare every file with the manifest: its size and SHA-256.

    Quick: of safetensors the size alone, for their readers compare sums of what they read.

    A bad file is moved to quarantine, so that only it is made again; DecdecError names the first.
    """
    content = manifest.read(record.path)
    on_piece = counting(ctx or JobContext.silent(), "verify", content.total_bytes)
    bad = [
        name
        for name, entry in content.files.items()
        if not is_good(record.path / name, entry, quick, on_piece)
    ]
    for name in bad:
        quarantine(record.name, record.path, name)
    if bad:
        more = f" and {len(bad) - 1} more" if len(bad) > 1 else ""
        raise damaged(record.name, f"{bad[0]}{more} does not match its record and was moved to quarantine")


def is_good(path: Path, entry: FileEntry, quick: bool, on_piece: Callable[[int], None]) -> bool:
    """Whether a file has the recorded size and SHA-256; quick: see `verify_files`."""
    trusted = quick and path.suffix == ".safetensors"
    return has_size(path, entry.bytes) and (trusted or sha256_of(path, on_piece) == entry.sha256)


def quarantine(model: str, folder: Path, name: str) -> None:
    """Move one file of a model's folder out of the way; nothing happens when it is missing."""
    source, target = folder / name, folders.quarantine(model) / name.replace("/", "--")
    with translated(source, f"Moving the damaged {name} to quarantine"):
        if source.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(source, target)


def counting(ctx: JobContext, step: str, total: int) -> Callable[[int], None]:
    """A listener for pieces of data that reports their sum as progress in bytes and stops when cancelled."""
    done = 0

    def on_piece(count: int) -> None:
        nonlocal done
        done += count
        ctx.progress(step, done, total, "bytes")

    return on_piece
