"""Files that appear whole or not at all: temporary name, fsync, rename, fsync of the folder."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from runtime.store.oserrors import translated

_TEMPORARY_SUFFIX = ".part"


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write that takes the place of `path` when the block ends, and vanishes if it raises.

    Makes missing parent folders. Raises DecdecError for a full disk or a folder that may not be written.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}{_TEMPORARY_SUFFIX}")
    with translated(path, f"Writing {path.name}"):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
        sync_folder(path.parent)


def write_bytes(path: Path, data: bytes) -> None:
    """Write a whole file atomically."""
    with replacing(path) as file:
        file.write(data)


def write_json(path: Path, value: Any) -> None:
    """Write a JSON document atomically, indented so that people can read it."""
    write_bytes(path, msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")


def is_temporary(path: Path) -> bool:
    """Whether a file is what an interrupted `replacing` left behind."""
    return path.name.startswith(".") and path.name.endswith(_TEMPORARY_SUFFIX)


def sync_folder(folder: Path) -> None:
    """Make renames inside a folder durable; Windows offers no such call and needs none."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
