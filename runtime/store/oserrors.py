"""Errors of the operating system as sentences a person can act on."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from runtime import locations
from runtime.errors import DecdecError
from runtime.store.units import in_words

FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
DENIED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
# With less, a database cannot even begin a change.
LEAST_FREE = 256 << 10


@contextmanager
def translated(path: Path, doing: str) -> Iterator[None]:
    """Turn an OSError raised inside into a DecdecError: `doing` failed, why, what to do.

    `path` is the file or folder the work is about; `doing` a phrase such as "Writing config.json".
    """
    try:
        yield
    except OSError as error:
        raise explain(error, path, doing) from error


def explain(error: OSError, path: Path, doing: str) -> DecdecError:
    """The DecdecError that says what an OSError means for `path`."""
    what = f"{doing} failed"
    if error.errno in FULL:
        return DecdecError(what, full_words(path, error.errno), _fix_full(path))
    if error.errno in DENIED:
        kind = "is on a read-only file system" if error.errno == errno.EROFS else "may not be used by you"
        return DecdecError(what, f"{error.filename or path} {kind}", _fix_denied(path, error.errno))
    if error.errno == errno.ENOENT:
        return DecdecError(what, f"{error.filename or path} does not exist")
    return DecdecError(what, f"{path}: {error.strerror or error}")


def nearest_existing(path: Path) -> Path:
    """The path itself or its closest ancestor that exists: where a new file would land."""
    for candidate in (path, *path.parents):
        try:
            if candidate.exists():
                return candidate
        except OSError:
            continue
    return Path(path.anchor or ".")


def is_ours(path: Path) -> bool:
    """Whether a path lies in the folder that DECDEC_HOME moves."""
    return path.is_relative_to(locations.home())


def full_words(path: Path, code: int | None = errno.ENOSPC) -> str:
    """Why nothing more can be written to `path`: bytes, files or a quota ran out; with what is free."""
    free, names = _free(path)
    amount = "an unknown number of bytes" if free is None else in_words(free)
    if code == errno.EDQUOT:
        return f"your quota on the disk of {path} is used up ({amount} free on it)"
    if names == 0 and free:
        return f"the disk of {path} is full: it takes no more files, though {amount} are free"
    return f"the disk of {path} is full ({amount} free)"


def looks_full(path: Path) -> bool:
    """Whether the disk of `path` has no room worth the name: for libraries that only say "failed"."""
    free, names = _free(path)
    return names == 0 or (free is not None and free < LEAST_FREE)


def _free(path: Path) -> tuple[int | None, int | None]:
    """Bytes, and files that can be made, where they are counted; None where nobody knows."""
    place = nearest_existing(path)
    try:
        free = shutil.disk_usage(place).free
        status = os.statvfs(place) if hasattr(os, "statvfs") else None
    except OSError:
        return None, None
    return free, status.f_favail if status is not None and status.f_files else None


def _fix_full(path: Path) -> str:
    other = ", or set DECDEC_HOME to a folder on a larger disk" if is_ours(path) else ""
    return f"free some space{other}"


def _fix_denied(path: Path, code: int) -> str:
    ways = ["change its permissions"] if code != errno.EROFS else []
    ways += ["set DECDEC_HOME to a folder you can write"] if is_ours(path) else []
    return ", or ".join(ways)
