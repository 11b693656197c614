"""Files that appear whole or not at all: temporary name, fsync, rename, fsync of the folder."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from runtime.store.oserrors import translated

_TEMPORARY_SUFFIX = ".part"
# `.name.host-process-random.part`: who writes it, so that what a dead process left can be told apart.
_WRITER = re.compile(r"\.([0-9a-f]{8})-(\d+)-[0-9a-f]{8}\.part$")


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write that takes the place of `path` when the block ends, and vanishes if it raises.

    Makes missing parent folders, and removes what killed processes left of the same file. Raises DecdecError
    for a full disk or a folder that may not be written.
    """
    temporary = temporary_for(path)
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
    sweep_for(path)


def write_bytes(path: Path, data: bytes) -> None:
    """Write a whole file atomically."""
    with replacing(path) as file:
        file.write(data)


def write_json(path: Path, value: Any) -> None:
    """Write a JSON document atomically, indented so that people can read it."""
    write_bytes(path, msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")


def temporary_for(path: Path) -> Path:
    """A name beside `path` that nothing has, to write under until the content is whole."""
    writer = f"{_host()}-{os.getpid()}-{secrets.token_hex(4)}"
    return path.with_name(f".{path.name}.{writer}{_TEMPORARY_SUFFIX}")


def sweep_for(path: Path) -> None:
    """Remove what killed processes left of earlier writes of a file."""
    sweep(path.parent, f".{path.name}.")


def is_temporary(path: Path) -> bool:
    """Whether a file is what an interrupted `replacing` left behind."""
    return path.name.startswith(".") and path.name.endswith(_TEMPORARY_SUFFIX)


def sweep(folder: Path, beginning: str = ".") -> None:
    """Remove the temporary files of processes of this machine that are gone; what cannot be stays."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        names = [each.name for each in entries if each.name.startswith(beginning)]
        for name in filter(_is_orphan, names):
            (folder / name).unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Make renames inside a folder durable; Windows offers no such call and needs none."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(folder: Path) -> None:
    """Make the names of everything below a folder durable, its own folders' too."""
    for path in (*(path for path in folder.rglob("*") if path.is_dir()), folder):
        sync_folder(path)


def process_exists(number: int) -> bool:
    """Whether a process of this machine has that number; one too large for the system is nobody's."""
    import psutil  # there is hardly ever anything to ask it about

    try:
        return psutil.pid_exists(number)
    except OverflowError:
        return False


def _is_orphan(name: str) -> bool:
    writer = _WRITER.search(name)
    if writer is None or writer[1] != _host():
        return False
    return not process_exists(int(writer[2]))


@cache
def _host() -> str:
    """This machine, or this container: process ids of others mean nothing here."""
    import platform

    return f"{zlib.crc32(platform.node().encode()):08x}"
