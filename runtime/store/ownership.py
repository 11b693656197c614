"""What is ours in folders with everyday names: the home that a person chose may hold somebody else's too."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Mapping
from pathlib import Path

from runtime.errors import DecdecError
from runtime.store import atomic, folders


def own(folder: Path) -> list[Path]:
    """What removing everything of ours takes of a folder: all of it, or of a mixed one what is ours."""
    if not (strange := strangers(folder)):
        return [folder] if folder.exists() else []
    return sorted(path for path in folder.iterdir() if path not in strange)


def strangers(folder: Path) -> list[Path]:
    """What others keep in a folder of that name in our home."""
    ours = _OURS.get(folder.name)
    try:
        return sorted(path for path in folder.iterdir() if ours and not (ours(path) or _passing(path)))
    except OSError:
        return []


def require_alone(folder: Path, what: str) -> None:
    """Raise DecdecError, beginning with `what`, where others keep something in the folder."""
    if strange := strangers(folder):
        raise DecdecError(
            what,
            f"{folder} also holds {strange[0].name}, which is not this program's",
            "take that elsewhere first",
        )


def _passing(path: Path) -> bool:
    """What is being written, and what desktops leave in every folder."""
    hidden = path.name.startswith(".") or path.name in ("Thumbs.db", "desktop.ini")
    return atomic.is_temporary(path) or (hidden and not path.is_dir())


def _named(*patterns: str) -> Callable[[Path], bool]:
    return lambda path: any(fnmatch.fnmatchcase(path.name, pattern) for pattern in patterns)


_OURS: Mapping[str, Callable[[Path], bool]] = {
    "models": folders.is_ours,
    "downloads": _named("hub-*", "wheel-*"),
    "logs": _named("*.log", "*.log.[0-9]*"),
}
