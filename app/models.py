"""Which model a command means, and whether it is prepared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runtime import store
from runtime.sources import catalogue, resolve


@dataclass(frozen=True, slots=True)
class Target:
    """A model by its name in the store. `source` is what to prepare it from."""

    name: str
    source: str
    prepared: bool


def target(wanted: str | None) -> Target:
    """What `wanted` (a store name, or anything a source can be made of; None: the default) stands for.

    Touches no network. Raises DecdecError with near names when it is nothing known.
    """
    text = catalogue.default().name if wanted is None else wanted
    prepared = {record.name.lower(): record.name for record in store.models()}
    if text.lower() in prepared:
        return Target(prepared[text.lower()], text, True)
    name = resolve(text).name
    return Target(name, text, name.lower() in prepared)


def first_ready(wanted: str, ready: Sequence[str]) -> str:
    """The remembered model if it is prepared, else the default, else any prepared one; empty: none is."""
    for name in (wanted, catalogue.default().name):
        if name in ready:
            return name
    return ready[0] if ready else ""
