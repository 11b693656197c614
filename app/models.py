"""Which model a command means, and whether it is prepared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from runtime import locations, store
from runtime.errors import DecdecError
from runtime.protocol.bases import DEFAULT
from runtime.protocol.commands import LOSSLESS
from runtime.sources import catalogue, resolve
from runtime.sources.recorded import source_of
from runtime.store.leftovers import Leftover, leftovers

_LACKS = {
    "": "is not here yet: fetching and preparing it",
    "damaged": "is damaged: making it again",
    "half-made": "is half made: going on with it",
}


@dataclass(frozen=True, slots=True)
class Target:
    """A model by its name in the store. `source` is what to prepare it from under this name, `bases` what it
    has, `left` what lies there of it where it is not prepared.
    """

    name: str
    source: str
    prepared: bool
    bases: frozenset[str] = frozenset()
    left: Literal["", "damaged", "half-made"] = ""

    def has(self, base: str) -> bool:
        """Whether it can be loaded with this base."""
        return self.prepared and (base == LOSSLESS or base in self.bases)

    def lack(self, base: str) -> str:
        """What has to be done before it can be loaded with this base, and why, for somebody who waits."""
        if self.prepared:
            return f"{self.name} has no base {base} yet: making it."
        return f"{self.name} {_LACKS[self.left]}."


def target(wanted: str | None) -> Target:
    """What `wanted` (a store name, or anything a source can be made of; None: the default) stands for.

    Touches no network. Raises DecdecError with near names when it is nothing known, or where a damaged or
    half-made model does not say any more what it was made from.
    """
    text = catalogue.default().name if wanted is None else wanted
    prepared = {record.name.lower(): record for record in store.models()}
    if text.lower() in prepared:
        # An imported model's name says nothing of where it came from.
        record = prepared[text.lower()]
        return _prepared(record, source_of(record.name, record.record) or text)
    left = next((each for each in leftovers() if each.name.lower() == text.lower()), None)
    if left is not None:
        return Target(left.name, _source_of(left), False, left=left.state)
    name = resolve(text).name
    found = prepared.get(name.lower())
    return Target(name, text, False) if found is None else _prepared(found, text)


def prepared_like(wanted: str) -> Target | None:
    """The prepared model of this name, or the only one with `wanted` in its name; None for no such one."""
    text = wanted.lower()
    records = store.models()
    same = [record for record in records if record.name.lower() == text]
    found = same or [record for record in records if text in record.name.lower()]
    return _prepared(found[0], wanted) if len(found) == 1 else None


def _source_of(left: Leftover) -> str:
    if source := source_of(left.name, left.record):
        return source
    raise DecdecError(
        f"The model {left.name} cannot be made again",
        "nothing on this machine says any more what it was made from",
        f"run decdec-chat import PATH --name {left.name}, or decdec-chat rm {left.name}",
    )


def _prepared(record: store.ModelRecord, source: str) -> Target:
    return Target(record.name, source, True, frozenset(record.record.get("bases", [])))


def first_ready(wanted: str, ready: Sequence[str]) -> str:
    """The remembered model if it is prepared, else the default, else any prepared one; empty: none is."""
    for name in (wanted, catalogue.default().name):
        if name in ready:
            return name
    return ready[0] if ready else ""


def base_of(name: str, wanted: str = "") -> str:
    """The base to load a prepared model with: the wanted one, else the usual one, else its first."""
    try:
        record = next((each for each in store.models() if each.name.lower() == name.lower()), None)
    except DecdecError:
        record = None
    bases = record.record.get("bases", []) if record else []
    if wanted == LOSSLESS or wanted in bases:
        return wanted
    return min(bases) if bases and DEFAULT.name not in bases else DEFAULT.name


def lost(wanted: str) -> str:
    """Why the model of last time is not there, as a sentence; empty where it is, or where there was none."""
    if not wanted:
        return ""
    try:
        store.find(wanted)
    except DecdecError as error:
        if (locations.models() / wanted).is_dir():
            return error.sentence
        return (
            f"{wanted}, the model of last time, is not in {locations.models()}. If its disk is not there,"
            " Ctrl+Q leaves, and everything is found again when it is back."
        )
    return ""
