"""Preparations that an earlier run has begun: noted like all models on their way, or found half made."""

from __future__ import annotations

from app.library import records
from app.library.pulls import Pull
from runtime.errors import DecdecError
from runtime.sources import resolve
from runtime.sources.recorded import source_of
from runtime.store.leftovers import leftovers


def begun() -> tuple[tuple[str, str], ...]:
    """Name and source of each; none where the store cannot be read."""
    noted = {pull.name: pull.source for pull in records.unfinished()}
    return tuple((_half_made() | noted).items())


def note(source: str) -> None:
    """Let the next start know that this source is being prepared; what has no name yet cannot be noted."""
    name = _name(source)
    if name:
        records.keep(Pull(name, source))


def forget(source: str) -> None:
    """It is prepared."""
    name = _name(source)
    if name:
        records.forget(Pull(name, source))


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
