"""What is written down of a move while it goes on, so that a kill leaves the models in one place.

In the old folder a record says where things go, in the new one a record says that all of them have arrived.
Which of the two is the home decides whether the next start takes them back or ends the move.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from runtime.errors import DecdecError
from runtime.store import atomic, in_use

FOLDERS = ("models", "downloads", "profiles", "evaluations", "compiled", "pulls")
STAGING = ".moving"
LEAVING, ARRIVED = ".moving-to.json", ".moved-from.json"
How = Literal["rename", "copy"]
T = TypeVar("T")


class Leaving(msgspec.Struct, frozen=True):
    """In the old folder: where its things go, and how. `made`: new folders for that, innermost first."""

    target: str
    how: How
    made: tuple[str, ...] = ()


class Arrived(msgspec.Struct, frozen=True):
    """In the new folder, once everything is there, below STAGING or in its place."""

    source: str


def begin(source: Path, leaving: Leaving) -> None:
    """Before anything is changed. A disk may be left because it is full: then it goes without a record."""
    with contextlib.suppress(DecdecError):
        atomic.write_json(source / LEAVING, leaving)


def arrive(source: Path, target: Path) -> None:
    """Everything is in the new folder: make that durable and known, and bring it to its place there."""
    atomic.sync_tree(target)
    atomic.write_json(target / ARRIVED, Arrived(str(source)))
    _place(target)


def settle(home: Path) -> None:
    """End or undo a move that was killed, where nobody works with the models; never raises."""
    with contextlib.suppress(DecdecError, OSError):
        if (home / ARRIVED).exists():
            _end_killed(home)
        elif (home / LEAVING).exists():
            _undo_killed(home)


def end(source: Path, target: Path, how: How) -> None:
    """The new folder is the home now: nothing of it stays in the old one."""
    _place(target)
    for name in FOLDERS if how == "copy" else ():
        shutil.rmtree(source / name, ignore_errors=True)
    for record in (source / LEAVING, target / ARRIVED):
        record.unlink(missing_ok=True)


def undo(source: Path, leaving: Leaving) -> None:
    """The old folder stays the home: everything is back in it, and gone from the new one. Raises OSError."""
    target = Path(leaving.target)
    complete = (target / ARRIVED).exists()
    for name in FOLDERS:
        there = target / name
        if leaving.how == "rename" and there.exists() and not (source / name).exists():
            os.rename(there, source / name)
        elif leaving.how == "copy" and complete:
            shutil.rmtree(there, ignore_errors=True)
    shutil.rmtree(target / STAGING, ignore_errors=True)
    with contextlib.suppress(OSError):
        atomic.sync_folder(source)
    for record in (target / ARRIVED, source / LEAVING):
        record.unlink(missing_ok=True)
    _remove_empty(leaving.made)


def _end_killed(home: Path) -> None:
    source = Path(_read(home / ARRIVED, Arrived).source)
    if not source.is_dir():
        # Its disk is not there now; to lock there would make the folder where the disk belongs.
        return
    with _alone(home, source):
        try:
            leaving = _read(source / LEAVING, Leaving)
        except OSError:
            # It had ended but for its own record.
            (home / ARRIVED).unlink(missing_ok=True)
            return
        if Path(leaving.target) == home:
            end(source, home, leaving.how)


def _undo_killed(home: Path) -> None:
    leaving = _read(home / LEAVING, Leaving)
    with _alone(home):
        undo(home, leaving)


@contextlib.contextmanager
def _alone(*homes: Path) -> Iterator[None]:
    with contextlib.ExitStack() as held:
        for home in homes:
            held.enter_context(in_use.nobody_else(home / "locks"))
        yield


def _read(path: Path, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (msgspec.DecodeError, RecursionError) as error:
        raise DecdecError(f"{path} is damaged", str(error)) from error


def _place(target: Path) -> None:
    for name in FOLDERS:
        if (target / STAGING / name).is_dir():
            os.rename(target / STAGING / name, target / name)
    shutil.rmtree(target / STAGING, ignore_errors=True)
    atomic.sync_folder(target)


def _remove_empty(folders: tuple[str, ...]) -> None:
    for folder in folders:
        try:
            os.rmdir(folder)
        except OSError:
            return
