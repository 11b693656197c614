"""Errors of the operating system as sentences a person can act on."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from runtime import locations
from runtime.errors import DecdecError
from runtime.store.units import in_words

FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
DENIED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


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
        return DecdecError(what, f"the disk of {path} is full ({_free_words(path)} free)", _fix_full(path))
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


def _free_words(path: Path) -> str:
    try:
        return in_words(shutil.disk_usage(nearest_existing(path)).free)
    except OSError:
        return "an unknown number of bytes"


def _fix_full(path: Path) -> str:
    other = ", or set DECDEC_HOME to a folder on a larger disk" if is_ours(path) else ""
    return f"free some space{other}"


def _fix_denied(path: Path, code: int) -> str:
    ways = ["change its permissions"] if code != errno.EROFS else []
    ways += ["set DECDEC_HOME to a folder you can write"] if is_ours(path) else []
    return ", or ".join(ways)
