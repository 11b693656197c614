"""Moving everything big to another folder: whole and verified there before anything here is deleted."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from runtime import locations
from runtime.errors import DecdecError
from runtime.progress import JobContext
from runtime.store import atomic, in_use, move_record, ownership
from runtime.store.move_record import FOLDERS, STAGING, How, Leaving
from runtime.store.oserrors import nearest_existing, translated
from runtime.store.space import require_space

PIECE = 4 << 20
# File systems take room for themselves.
SPARE = 64 << 20


def held_bytes(home: Path) -> int:
    """Bytes of what would be moved; what cannot be looked at counts nothing."""
    return sum(_size(path) for path in _files(home))


def place(wanted: Path) -> Path:
    """Where things would lie: the folder itself if it is new or empty, else one of ours within it."""
    if wanted == locations.usual_home() or wanted.name == locations.APP or not _filled(wanted):
        return wanted
    return wanted / locations.APP


def holds_models(home: Path) -> bool:
    """Whether something of ours lies in a folder already."""
    return any(_filled(home / name) for name in FOLDERS)


def require_possible(source: Path, target: Path) -> None:
    """Raise DecdecError with the reason why things cannot be moved from one folder to another."""
    what = f"The models cannot be moved to {target}"
    if source == target:
        raise DecdecError(what, "they lie there already")
    if target.is_relative_to(source) or source.is_relative_to(target):
        raise DecdecError(what, f"it and {source} lie within each other", "choose a folder elsewhere")
    if holds_models(target):
        raise DecdecError(what, "it holds models already", "choose an empty folder, or use that one as it is")
    for name in FOLDERS:
        ownership.require_alone(source / name, what)
    if not _same_disk(source, target):
        require_space(target, held_bytes(source) + SPARE)


def move(source: Path, target: Path, switch: Callable[[], None], ctx: JobContext) -> None:
    """Bring everything to `target`, call `switch`, then delete it in `source`.

    Until `switch` has returned, any failure and a stop leave everything where it was. Raises DecdecError when
    somebody works with the folder, when it does not fit, or when what arrived differs from what was there.
    """
    with in_use.nobody_else(source / "locks"):
        require_possible(source, target)
        with translated(target, "Moving the models"):
            how: How = "rename" if _same_disk(source, target) else "copy"
            leaving = Leaving(str(target), how, _missing(target))
            move_record.begin(source, leaving)
            _carry(source, leaving, switch, ctx)


def _carry(source: Path, leaving: Leaving, switch: Callable[[], None], ctx: JobContext) -> None:
    target = Path(leaving.target)
    try:
        target.mkdir(parents=True, exist_ok=True)
        (_rename if leaving.how == "rename" else _copy)(source, target, ctx)
        move_record.arrive(source, target)
        switch()
    except BaseException:
        move_record.undo(source, leaving)
        raise
    move_record.end(source, target, leaving.how)


def _rename(source: Path, target: Path, ctx: JobContext) -> None:
    for name in _there(source):
        ctx.check()
        os.rename(source / name, target / name)
    atomic.sync_folder(source)


def _copy(source: Path, target: Path, ctx: JobContext) -> None:
    shutil.rmtree(target / STAGING, ignore_errors=True)
    _copy_all(source, target / STAGING, ctx)


def _copy_all(source: Path, target: Path, ctx: JobContext) -> None:
    files = list(_files(source))
    count = _Count(ctx, 2 * sum(map(_size, files)))
    for path in files:
        there = target / path.relative_to(source)
        there.parent.mkdir(parents=True, exist_ok=True)
        if path.is_symlink():
            there.symlink_to(os.readlink(path))
        else:
            _copy_file(path, there, count)


def _copy_file(path: Path, there: Path, count: _Count) -> None:
    wanted = hashlib.sha256()
    with path.open("rb") as data, there.open("xb") as copy:
        for piece in _pieces(data, count):
            wanted.update(piece)
            copy.write(piece)
        copy.flush()
        os.fsync(copy.fileno())
    shutil.copystat(path, there)
    arrived = hashlib.sha256()
    with there.open("rb") as data:
        for piece in _pieces(data, count):
            arrived.update(piece)
    if arrived.digest() != wanted.digest():
        raise DecdecError(
            f"{there} differs from {path}", "it was damaged on its way", "check the disk of the new folder"
        )


class _Count:
    """Bytes so far, as progress."""

    def __init__(self, ctx: JobContext, total: int) -> None:
        self._ctx, self._total, self._done = ctx, total, 0

    def add(self, count: int) -> None:
        """So many more; raises Interrupted when the user has stopped it."""
        self._done += count
        self._ctx.progress("move", self._done, self._total, "bytes")


def _pieces(data: BinaryIO, count: _Count) -> Iterator[bytes]:
    while piece := data.read(PIECE):
        yield piece
        count.add(len(piece))


def _files(home: Path) -> Iterator[Path]:
    """Files of ours that are worth taking along."""
    for name in FOLDERS:
        for path in sorted((home / name).rglob("*")):
            if (path.is_symlink() or path.is_file()) and not atomic.is_temporary(path):
                yield path


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0


def _there(home: Path) -> list[str]:
    return [name for name in FOLDERS if (home / name).is_dir()]


def _filled(folder: Path) -> bool:
    try:
        return any(folder.iterdir())
    except OSError:
        return False


def _same_disk(source: Path, target: Path) -> bool:
    """Whether a rename is enough, for every folder: each may be a disk of its own."""
    disk = nearest_existing(target).stat().st_dev
    return all((source / name).stat().st_dev == disk for name in _there(source))


def _missing(folder: Path) -> tuple[str, ...]:
    """Folders that have to be made for it, innermost first."""
    return tuple(str(path) for path in (folder, *folder.parents) if not path.exists())
