"""Pulls that were not finished, on disk: one small file each, so that the next start can go on with them."""

from __future__ import annotations

import contextlib

import msgspec

from app.library.pulls import Pull, PullState
from runtime import locations
from runtime.errors import DecdecError
from runtime.store.atomic import write_json
from runtime.store.names import checked

MAX_BYTES = 1 << 16


class _Kept(msgspec.Struct, frozen=True):
    name: str
    source: str

    def __post_init__(self) -> None:
        try:
            checked(self.name)
        except DecdecError as error:
            raise ValueError(error.sentence) from error


def keep(pull: Pull) -> str:
    """Note a pull; gives a sentence where that fails, empty where all is well."""
    try:
        write_json(locations.pulls() / f"{checked(pull.name)}.json", _Kept(pull.name, pull.source))
    except DecdecError as error:
        doing = "imported" if pull.imported else "fetched"
        return f"{error.sentence} The next start will not know that {pull.name} was being {doing}."
    return ""


def forget(pull: Pull) -> None:
    """Nothing is left to go on with."""
    with contextlib.suppress(OSError):
        (locations.pulls() / f"{pull.name}.json").unlink(missing_ok=True)


def unfinished() -> list[Pull]:
    """What earlier runs have not finished, by name; files that cannot be understood are no pulls."""
    try:
        paths = sorted(path for path in locations.pulls().glob("*.json") if path.is_file())
    except OSError:
        return []
    found = []
    for path in paths:
        with contextlib.suppress(OSError, msgspec.DecodeError, ValueError, RecursionError):
            with path.open("rb") as file:
                kept = msgspec.json.decode(file.read(MAX_BYTES), type=_Kept)
            found.append(Pull(kept.name, kept.source, PullState.PAUSED))
    return found
