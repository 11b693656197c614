"""What a newer commit has unchanged is not fetched again."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from runtime.download.files import RemoteFile, is_there, partial_files
from runtime.sources.hub_api import Listing
from runtime.store.oserrors import translated


def carry_over(old: Listing, new: Listing, root: Path) -> None:
    """Take files, and parts of them, from the folder of an older commit below `root` to that of a newer one.

    Only those whose hash is known and equal. Whole files stay in the older folder too, without taking room
    twice: a prepared model may name it as its source.
    """
    same = [file for file in new.files if file in old.files and (file.sha256 or file.git_sha1)]
    if old.commit == new.commit or not same:
        return
    source, target = root / old.commit, root / new.commit
    with translated(target, "Taking up what was downloaded"):
        target.mkdir(parents=True, exist_ok=True)
    for file in same:
        if not is_there(file, target):
            _carry(file, source, target)


def _carry(file: RemoteFile, source: Path, target: Path) -> None:
    # What the system refuses here is fetched instead.
    with suppress(OSError):
        if is_there(file, source):
            os.link(source / file.name, target / file.name)
            return
        for path in partial_files(source / file.name):
            os.replace(path, target / path.name)
