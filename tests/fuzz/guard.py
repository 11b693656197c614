"""Sees which files, programs and addresses an input makes the product touch, by Python's audit events."""

from __future__ import annotations

import contextlib
import os
import site
import sys
import sysconfig
from pathlib import Path

# Events that change files: where the paths stand in their arguments, and the folders' descriptors for each.
CHANGES = {
    "os.rename": ((0, 2), (1, 3)), "os.link": ((0, 2), (1, 3)), "os.symlink": ((1, 2),),
    "os.remove": ((0, 1),), "os.mkdir": ((0, 2),), "os.rmdir": ((0, 1),), "os.chmod": ((0, 2),),
    "os.chown": ((0, 3),),
    "os.utime": ((0, 3),), "os.truncate": ((0, None),), "os.setxattr": ((0, None),),
    "shutil.rmtree": ((0, None),),
}  # fmt: skip
LISTINGS = {"os.listdir", "os.scandir"}
NEVER = {
    "subprocess.Popen",
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "os.fork",
    "socket.connect",
    "socket.bind",
}
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
PROJECT = Path(__file__).resolve().parents[2]
_LIBRARIES = {*site.getsitepackages(), *sysconfig.get_paths().values(), sys.prefix, sys.base_prefix}
READABLE = tuple(
    os.path.realpath(path)
    for path in {*_LIBRARIES, *sys.path, str(PROJECT), "/proc", "/sys", "/dev", "/usr", "/lib"}
)

_state: dict[str, object] = {"folder": None, "touched": [], "installed": False}


def install() -> None:
    """Begin to listen; a hook cannot be taken out again, but it acts only inside `watch`."""
    if not _state["installed"]:
        _state["installed"] = True
        sys.dont_write_bytecode = True
        sys.addaudithook(_hook)


@contextlib.contextmanager
def watch(folder: Path):
    """Collects a line for all that is changed outside `folder`, read outside the libraries, or run."""
    touched: list[str] = []
    _state.update(folder=os.path.realpath(folder), touched=touched)
    try:
        yield touched
    finally:
        _state["folder"] = None


def _hook(event: str, args: tuple) -> None:
    folder = _state["folder"]
    if folder is None:
        return
    _state["folder"] = None
    try:
        line = _judged(event, args, str(folder))
    finally:
        _state["folder"] = folder
    if line:
        _state["touched"].append(line)
        raise PermissionError(line)


def _judged(event: str, args: tuple, folder: str) -> str | None:
    if event == "open":
        return _opened(args, folder)
    if event in CHANGES:
        paths = [_at(args, *place) for place in CHANGES[event]]
        bad = [path for path in paths if not (_inside(path, folder) or _is_cache(path))]
        return f"{event} {bad[0]!r}" if bad else None
    if event in LISTINGS and not _inside(args[0], folder) and not _inside(args[0], *READABLE):
        return f"{event} {args[0]!r}"
    return f"{event} {args[:2]!r}"[:300] if event in NEVER else None


def _at(args: tuple, path: int, folder: int | None) -> object:
    """A path among an event's arguments, below the folder whose descriptor goes with it."""
    descriptor = args[folder] if folder is not None and folder < len(args) else -1
    if isinstance(args[path], int) or not isinstance(descriptor, int) or descriptor < 0:
        return args[path]
    return os.path.join(os.readlink(f"/proc/self/fd/{descriptor}"), os.fsdecode(args[path]))


def _opened(args: tuple, folder: str) -> str | None:
    path, mode, flags = args
    if isinstance(path, int) or _inside(path, folder):
        return None
    writes = (isinstance(flags, int) and flags & WRITES) or (
        isinstance(mode, str) and set(mode) & set("wax+")
    )
    if writes:
        return None if path == os.devnull or _is_cache(path) else f"opened for writing {path!r}"
    return None if _inside(path, *READABLE) or _is_cache(path) else f"read {path!r}"


def _is_cache(path: object) -> bool:
    """Whether a path is of Python's or numba's compiled code, beside the sources or where numba was told."""
    if (told := os.environ.get("NUMBA_CACHE_DIR")) and _inside(path, os.path.realpath(told)):
        return True
    return _inside(path, str(PROJECT), *sys.path[:1]) and "__pycache__" in os.fsdecode(path)


def _inside(path: object, *folders: str) -> bool:
    if isinstance(path, int) or path is None:
        return True
    try:
        real = os.path.realpath(os.fsdecode(path))
    except (ValueError, TypeError):
        return True
    return any(real == folder or real.startswith(folder + os.sep) for folder in folders)
