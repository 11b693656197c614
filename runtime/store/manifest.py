"""manifest.json: what a whole model consists of, with size and SHA-256 of every file."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from pathlib import Path, PurePath, PurePosixPath
from typing import Annotated, Any

import msgspec

from runtime.errors import DecdecError
from runtime.store import atomic
from runtime.store.hashing import sha256_of
from runtime.store.oserrors import translated

FILE_NAME = "manifest.json"
FORMAT = 1
MAX_BYTES = 8 << 20
# Far above any real model's; headers weigh much in a tiny one.
MAX_BITS = 1 << 10
# A pipe where a file should be would keep its reader waiting for ever; Windows has no such pipes in folders.
_AT_ONCE = getattr(os, "O_NONBLOCK", 0)
_BASE = re.compile(r"[a-z0-9][a-z0-9.]{0,31}")


class FileEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Size and hash of one file."""

    bytes: Annotated[int, msgspec.Meta(ge=0)]
    sha256: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A model's files by POSIX path relative to its folder, and the JSON record of where it came from.

    The record must say `source` (for people) and `bits_per_weight`; everything else in it is the writer's.
    """

    format: int
    record: dict[str, Any]
    files: dict[str, FileEntry]

    def __post_init__(self) -> None:
        if self.format != FORMAT:
            raise ValueError(f"its format is {self.format}, this program reads {FORMAT}")
        if not self.files or not all(map(_is_safe, self.files)):
            raise ValueError("its list of files is empty or leaves the model's folder")
        if not isinstance(self.record.get("source"), str):
            raise ValueError("its record does not say the source")
        bits = self.record.get("bits_per_weight")
        if not isinstance(bits, int | float) or not 0 <= bits <= MAX_BITS:
            raise ValueError(f"its record does not say bits_per_weight, a number from 0 to {MAX_BITS}")
        if not _are_bases(self.record.get("bases", [])):
            raise ValueError("its record names bases that cannot be")

    @property
    def total_bytes(self) -> int:
        """Size of all files together."""
        return sum(entry.bytes for entry in self.files.values())


def read(folder: Path) -> Manifest:
    """The manifest of a model's folder; raises DecdecError when it is missing or not to be trusted."""
    path = folder / FILE_NAME
    try:
        with translated(path, f"Reading the model {folder.name}"):
            content = _content(path)
        if len(content) > MAX_BYTES:
            raise ValueError("it is absurdly large")
        return msgspec.json.decode(content, type=Manifest)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise DecdecError(f"The manifest {path} is damaged", str(error), _again(folder)) from error


def write(folder: Path, record: dict[str, Any], on_piece: Callable[[int], None]) -> Manifest:
    """Hash every file below a folder, make its data durable and write the manifest beside them."""
    files = {name: _entry(folder / name, on_piece) for name in contents(folder)}
    try:
        manifest = Manifest(FORMAT, record, files)
    except ValueError as error:
        raise DecdecError(f"The model in {folder} cannot be kept", str(error)) from error
    atomic.write_json(folder / FILE_NAME, manifest)
    return manifest


def contents(folder: Path) -> list[str]:
    """Relative POSIX paths of a model's files: neither manifest nor hidden files of the store's own."""
    found = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return sorted(path.as_posix() for path in found if path.as_posix() != FILE_NAME and not _is_hidden(path))


def _content(path: Path) -> bytes:
    """A regular file's bytes, at most one more than a manifest may have."""
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | _AT_ONCE)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("it is no regular file")
        return file.read(MAX_BYTES + 1)


def _entry(path: Path, on_piece: Callable[[int], None]) -> FileEntry:
    with translated(path, f"Making {path.name} durable"), path.open("r+b") as file:
        os.fsync(file.fileno())
        size = path.stat().st_size
    return FileEntry(size, sha256_of(path, on_piece))


def _are_bases(value: Any) -> bool:
    """Whether a value lists names of bases, which become part of names of files."""
    return isinstance(value, list) and all(isinstance(base, str) and _BASE.fullmatch(base) for base in value)


def _is_safe(name: str) -> bool:
    parts = PurePosixPath(name).parts
    plain = not name.startswith("/") and not re.search(r"[\\:\x00-\x1f]", name)
    return plain and bool(parts) and not _is_hidden(PurePosixPath(name))


def _is_hidden(path: PurePath) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _again(folder: Path) -> str:
    return f"make the model again with decdec-chat pull {folder.name}"
