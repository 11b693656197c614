"""Free disk space, asked before the first byte is written."""

from __future__ import annotations

import shutil
from pathlib import Path

from runtime.errors import DecdecError
from runtime.store.oserrors import is_ours, nearest_existing, translated
from runtime.store.units import in_words


def require_space(folder: Path, needed: int, move_with: str = "") -> None:
    """Raise DecdecError unless `needed` bytes are free where `folder` is, or will be made.

    `move_with` names the environment variable that moves the folder; DECDEC_HOME for everything of ours.
    """
    with translated(folder, "Looking for free disk space"):
        free = shutil.disk_usage(nearest_existing(folder)).free
    if free >= needed:
        return
    variable = move_with or ("DECDEC_HOME" if is_ours(folder) else "")
    other = f", or set {variable} to a folder on a larger disk" if variable else ""
    raise DecdecError(
        f"Not enough disk space in {folder}",
        f"{in_words(needed)} are needed and {in_words(free)} are free",
        f"free some space{other}",
    )
