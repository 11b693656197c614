"""How to remove the program and what it keeps: commands that name nothing that belongs to somebody else."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

from runtime import locations
from runtime.store import ownership
from runtime.store.move_record import ARRIVED, FOLDERS, LEAVING, STAGING

# In a folder that a person chose other things may lie too, so no pattern is wider than our own names.
_BIG = (*FOLDERS, "locks", "logs", STAGING, LEAVING, ARRIVED)
_SMALL = (
    *("settings.toml", "settings.json", "settings.bad", "settings.bad[0-9]*"),
    *("history.db", "history.db-wal", "history.db-shm", "history.db-journal", "history-[0-9]*.bad*"),
)


def removal() -> list[dict[str, str]]:
    """A command for the program, and one for all it keeps: models, settings, conversations.

    What other programs share (Triton's kernels, the hub library's cache) is left out.
    """
    kept = kept_paths()
    return [
        {"name": "remove program", "command": _uninstalling()},
        {"name": "remove all it keeps", "command": _deleting(kept) if kept else "there is nothing yet"},
    ]


def kept_paths() -> list[Path]:
    """Every file and folder of ours that is there; a folder stands for what is in it."""
    found = dict.fromkeys(path for place in _places() for path in _ours(*place))
    return [path for path in found if not any(parent in found for parent in path.parents)]


def _places() -> Iterator[tuple[Path, tuple[str, ...], bool]]:
    """Folders, what of ours they hold, and whether a person chose them."""
    moved, chosen = bool(os.environ.get(locations.CACHE)), bool(os.environ.get(locations.HOME))
    yield locations.home(), _BIG, moved or chosen
    yield locations.usual_home(), (*_BIG, *_SMALL), chosen
    yield locations.settings_file().parent, _SMALL, chosen
    yield locations.history_file().parent, _SMALL, chosen


def _ours(folder: Path, names: tuple[str, ...], chosen: bool) -> list[Path]:
    """In a folder that a person chose what is ours; else the folder, which the platform gives to us alone."""
    if not chosen:
        return [folder] if folder.is_dir() else []
    return sorted(ours for name in names for path in folder.glob(name) for ours in ownership.own(path))


def _uninstalling() -> str:
    rest = f"-m pip uninstall {locations.APP}"
    return (
        f"& {_quoted(sys.executable)} {rest}" if os.name == "nt" else f"{shlex.quote(sys.executable)} {rest}"
    )


def _deleting(paths: list[Path]) -> str:
    if os.name == "nt":
        return "Remove-Item -Recurse -LiteralPath " + ", ".join(_quoted(str(path)) for path in paths)
    return shlex.join(["rm", "-r", *map(str, paths)])


def _quoted(text: str) -> str:
    """As PowerShell reads it."""
    return "'" + text.replace("'", "''") + "'"
