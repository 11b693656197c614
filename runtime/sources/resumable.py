"""One file over an unreliable connection: goes on after a cut, across runs too; checked at the end."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated, Protocol

import msgspec

from runtime.errors import DecdecError
from runtime.store.atomic import sync_folder
from runtime.store.hashing import PIECE_BYTES
from runtime.store.oserrors import translated
from runtime.store.records import has_size

TRIES = 5
_PARTIAL_SUFFIX = ".partial"


class UnreachableError(DecdecError):
    """The other side cannot be reached now; trying again may help."""


class RemoteFile(msgspec.Struct, frozen=True):
    """A file at its source. `sha256` of its content, or `git_sha1` as git names a blob, where known."""

    name: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    bytes: Annotated[int, msgspec.Meta(ge=0)]
    sha256: str = ""
    git_sha1: str = ""


class Transport(Protocol):
    """Opens a file from an offset on."""

    def open(self, name: str, start: int) -> AbstractContextManager[tuple[int, Iterator[bytes]]]:
        """The offset at which the answer starts (`start`, or 0 if the server ignores it) and its pieces.

        Raises UnreachableError, also while pieces are read, when the connection breaks.
        """
        ...


def download(
    file: RemoteFile,
    target: Path,
    transport: Transport,
    on_bytes: Callable[[int], None],
    wait: Callable[[float], None] = time.sleep,
) -> None:
    """Bring a file to `target`, continuing a partial one; `on_bytes` hears how many bytes are there.

    Gives up after TRIES attempts that brought nothing. An exception of `on_bytes` stops it, and what is there
    stays.
    """
    partial = target.with_name(target.name + _PARTIAL_SUFFIX)
    with translated(target, f"Downloading {file.name}"):
        partial.parent.mkdir(parents=True, exist_ok=True)
        partial.touch()
        if partial.stat().st_size > file.bytes:
            os.truncate(partial, 0)
        _fill(file, partial, transport, on_bytes, wait)
        _check(file, partial)
        os.replace(partial, target)
        sync_folder(target.parent)


def is_there(file: RemoteFile, folder: Path) -> bool:
    """Whether a file was downloaded into a folder before; it was checked then."""
    return has_size(folder / file.name, file.bytes)


def missing_bytes(file: RemoteFile, folder: Path) -> int:
    """How much of a file is still to come."""
    if is_there(file, folder):
        return 0
    partial = folder / (file.name + _PARTIAL_SUFFIX)
    return max(0, file.bytes - partial.stat().st_size) if partial.exists() else file.bytes


def _fill(
    file: RemoteFile,
    partial: Path,
    transport: Transport,
    on_bytes: Callable[[int], None],
    wait: Callable[[float], None],
) -> None:
    failures, have = 0, partial.stat().st_size
    while have < file.bytes:
        try:
            _append(file, partial, have, transport, on_bytes)
        except UnreachableError:
            failures = failures + 1 if partial.stat().st_size <= have else 1
            if failures >= TRIES:
                raise
            wait(0.5 * 2**failures)
        have = partial.stat().st_size


def _append(
    file: RemoteFile, partial: Path, have: int, transport: Transport, on_bytes: Callable[[int], None]
) -> None:
    with transport.open(file.name, have) as (start, pieces), partial.open("r+b") as out:
        if start not in (0, have):
            raise UnreachableError(
                f"Downloading {file.name} failed", f"asked from byte {have}, got from {start}"
            )
        out.seek(start)
        out.truncate()
        for piece in pieces:
            if out.tell() + len(piece) > file.bytes:
                raise DecdecError(
                    f"Downloading {file.name} failed", f"more than its {file.bytes} bytes arrived"
                )
            out.write(piece)
            on_bytes(out.tell())
        if out.tell() < file.bytes:
            raise UnreachableError(
                f"Downloading {file.name} failed", "the connection ended early", "start again"
            )


def _check(file: RemoteFile, partial: Path) -> None:
    sha256, sha1 = hashlib.sha256(), hashlib.sha1(b"blob %d\0" % file.bytes, usedforsecurity=False)
    with partial.open("r+b") as content:
        while piece := content.read(PIECE_BYTES):
            sha256.update(piece)
            if not file.sha256:
                sha1.update(piece)
        os.fsync(content.fileno())
    for known, found in ((file.sha256, sha256.hexdigest()), (file.git_sha1, sha1.hexdigest())):
        if known:
            if known != found:
                partial.unlink()
                raise _arrived_damaged(file, known, found)
            return


def _arrived_damaged(file: RemoteFile, known: str, found: str) -> DecdecError:
    why = f"its hash is {found}, not {known}"
    return DecdecError(f"{file.name} arrived damaged", why, "it was removed; start again to download it anew")
