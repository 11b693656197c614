"""Preparations that an earlier run has begun: noted like all models on their way, or found half made."""

from __future__ import annotations

from app.library import records, removal
from app.library.pulls import Pull, Pulls
from runtime.errors import DecdecError
from runtime.sources import resolve
from runtime.sources.recorded import source_of
from runtime.store.leftovers import leftovers


def begun() -> tuple[tuple[str, str], ...]:
    """Name and source of each; none where the store cannot be read."""
    noted = {pull.name: pull.source for pull in records.unfinished()}
    return tuple((_half_made() | noted).items())


def note(source: str, name: str = "") -> None:
    """Let the next start know that this source is being prepared; what has no name yet cannot be noted.

    `name`, here and below: what it is called in the store, where that is not what its source is called.
    """
    if name := name or _name(source):
        records.keep(Pull(name, source))


def rest(pulls: Pulls, source: str, name: str = "") -> None:
    """It was left before its end: it rests among the models on their way."""
    name = name or _name(source)
    if name and pulls.find(name) is None:
        pulls.add(name, source)
        pulls.pause(name)


def refused(pulls: Pulls, source: str, name: str = "") -> None:
    """It failed before it had begun: where nothing is on disk of it, there is nothing to go on with."""
    name = name or _name(source)
    if name and not removal.bytes_of_pull(Pull(name, source)):
        settle(pulls, source, name)


def settle(pulls: Pulls, source: str, name: str = "") -> None:
    """It is prepared: nothing is left to go on with."""
    if name := name or _name(source):
        records.forget(Pull(name, source))
        pull = pulls.find(name)
        if pull is not None and not pull.active:
            pulls.cancel(name)


def _half_made() -> dict[str, str]:
    try:
        left = [each for each in leftovers() if each.state == "half-made"]
    except DecdecError:
        return {}
    sources = {each.name: source_of(each.name, each.record) for each in left}
    return {name: source for name, source in sources.items() if source}


def _name(source: str) -> str:
    try:
        return resolve(source).name
    except DecdecError:
        return ""
