"""What is to be downloaded: names that are safe as files of any system, sizes that can be, hashes."""

from __future__ import annotations

import re
import stat
from collections.abc import Iterable
from pathlib import Path

import msgspec

from runtime.errors import DecdecError

PARTIAL_SUFFIX, _NOTE_SUFFIX = ".partial", ".etag"
MAX_BYTES = 1 << 60
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,199}")
_DEVICE = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
_SHA256, _SHA1 = re.compile(r"([0-9a-f]{64})?"), re.compile(r"([0-9a-f]{40})?")


class RemoteFile(msgspec.Struct, frozen=True):
    """A file at its source. `sha256` of its content, or `git_sha1` as git names a blob, where known.

    Raises ValueError for what is no plain file name on every system, and for impossible sizes and hashes.
    """

    name: str
    bytes: int
    sha256: str = ""
    git_sha1: str = ""

    def __post_init__(self) -> None:
        shown = repr(self.name[:60])
        if not _NAME.fullmatch(self.name) or self.name.endswith("."):
            raise ValueError(f"{shown} is no plain file name")
        if _DEVICE.fullmatch(self.name):
            raise ValueError(f"{shown} is the name of a device on Windows")
        if not 0 <= self.bytes <= MAX_BYTES:
            raise ValueError(f"{self.bytes} is no size for {shown}")
        if not _SHA256.fullmatch(self.sha256) or not _SHA1.fullmatch(self.git_sha1):
            raise ValueError(f"the hash of {shown} is none")


def check_distinct(files: Iterable[RemoteFile], where: str) -> None:
    """Raise DecdecError where two names are the same file, be it only where case does not count."""
    seen: dict[str, str] = {}
    for file in files:
        other = seen.get(file.name.lower())
        if other is not None:
            alike = f"{other} and {file.name} are one file where case does not count"
            why = f"{other} is listed twice" if other == file.name else alike
            raise DecdecError(f"{where} cannot be downloaded", why, "ask its author to name files apart")
        seen[file.name.lower()] = file.name


def is_there(file: RemoteFile, folder: Path) -> bool:
    """Whether a file was downloaded into a folder before; it was checked then. Links do not count."""
    return _regular_size(folder / file.name) == file.bytes


def missing_bytes(file: RemoteFile, folder: Path) -> int:
    """How much of a file is still to come."""
    if is_there(file, folder):
        return 0
    return max(0, file.bytes - max(0, _regular_size(partial_path(folder / file.name))))


def partial_path(target: Path) -> Path:
    """Where the part of a file lies that is there."""
    return target.with_name(target.name + PARTIAL_SUFFIX)


def note_path(target: Path) -> Path:
    """Where it is noted of which version that part is."""
    return target.with_name(target.name + PARTIAL_SUFFIX + _NOTE_SUFFIX)


def partial_files(target: Path) -> tuple[Path, Path]:
    """Both, the part first."""
    return partial_path(target), note_path(target)


def _regular_size(path: Path) -> int:
    """Size of a regular file that is no link; -1 for anything else."""
    try:
        found = path.lstat()
    except OSError:
        return -1
    return found.st_size if stat.S_ISREG(found.st_mode) else -1
