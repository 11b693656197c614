"""What the list of models shows, in sections: what is here, on its way, known, and found on a hub."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Literal

from app.library.pulls import Pull
from runtime import store
from runtime.errors import DecdecError
from runtime.sources import catalogue
from runtime.sources.catalogue import CatalogueEntry
from runtime.sources.fit import Fit, Room, fit
from runtime.sources.hub_search import Found, FoundModel
from runtime.sources.recorded import source_of
from runtime.store import ModelRecord
from runtime.store.leftovers import Leftover, leftovers
from runtime.store.names import slug
from runtime.tuner.files import was_tuned

Origin = Literal["catalogue", "hub", "typed"]
_REPO = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True)
class ReadyRow:
    """A prepared model."""

    record: ModelRecord
    tuned: bool
    loaded: bool

    @property
    def name(self) -> str:
        """Its name in the store."""
        return self.record.name

    @property
    def key(self) -> str:
        """Stands for this row as long as the list is shown."""
        return f"ready:{self.name}"


@dataclass(frozen=True, slots=True)
class PullRow:
    """A model on its way here."""

    pull: Pull

    @property
    def name(self) -> str:
        """Its name in the store."""
        return self.pull.name

    @property
    def key(self) -> str:
        """Stands for this row as long as the list is shown."""
        return f"pull:{self.name}"


@dataclass(frozen=True, slots=True)
class LeftoverRow:
    """A model that is damaged or was given up half made. `source`: empty where it is not known."""

    leftover: Leftover
    source: str

    @property
    def name(self) -> str:
        """Its name in the store."""
        return self.leftover.name

    @property
    def key(self) -> str:
        """Stands for this row as long as the list is shown."""
        return f"left:{self.name}"


@dataclass(frozen=True, slots=True)
class OfferRow:
    """A model that can be fetched. Bytes and words are 0 or empty where they are not known.

    `label`: how it is shown; `name`: its name in the store; `fit`: what this machine needs for it.
    """

    origin: Origin
    label: str
    name: str
    source: str
    download: int = 0
    fit: Fit | None = None
    licence: str = ""
    gated: bool = False
    downloads: int = 0
    ready: bool = False

    @property
    def key(self) -> str:
        """Stands for this row as long as the list is shown."""
        return f"{self.origin}:{self.source}"


Row = ReadyRow | PullRow | LeftoverRow | OfferRow


@dataclass(frozen=True, slots=True)
class Section:
    """Rows under a title."""

    title: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Shelf:
    """What lies on this machine, and what is known by name."""

    records: tuple[ModelRecord, ...] = ()
    leftovers: tuple[Leftover, ...] = ()
    offers: tuple[OfferRow, ...] = ()
    tuned: frozenset[str] = frozenset()

    @classmethod
    def read(cls, entries: tuple[CatalogueEntry, ...], room: Room | None = None) -> Shelf:
        """Look at the disk; raises DecdecError where it cannot be read. `room`: of this machine, if known."""
        records = tuple(store.models())
        tuned = (r.name for r in records if was_tuned(r.name, r.record.get("bases", [])))
        here = {record.name.lower() for record in records}
        return cls(records, tuple(leftovers()), offers_of(entries, here, room), frozenset(tuned))

    @property
    def bytes(self) -> int:
        """Size of all prepared models."""
        return sum(record.bytes for record in self.records)

    def find(self, name: str) -> ModelRecord | None:
        """A prepared model by its name; case is forgiven."""
        return next((record for record in self.records if record.name.lower() == name.lower()), None)


@dataclass(frozen=True, slots=True)
class View:
    """What is asked of the list: words to filter by, a hub's answer, and the model that is loaded."""

    words: str = ""
    found: Found | None = None
    loaded: str = ""


def sections(shelf: Shelf, pulls: Iterable[Pull], view: View) -> tuple[Section, ...]:
    """The list; sections without rows are left out."""
    on_the_way = list(pulls)
    taken = {pull.name.lower() for pull in on_the_way}
    here = {record.name.lower() for record in shelf.records}
    groups: list[tuple[str, list[Row]]] = [
        ("On this machine", [_ready(record, shelf, view) for record in shelf.records]),
        ("On the way", [PullRow(pull) for pull in on_the_way]),
        ("Not whole", [_left(left) for left in shelf.leftovers if left.name.lower() not in taken]),
        ("Catalogue", [row for row in shelf.offers if row.name.lower() not in taken]),
    ]
    shown = [(title, [row for row in rows if matches(row, view.words)]) for title, rows in groups]
    shown.append(_hub(view, here, taken))
    return tuple(Section(title, tuple(rows)) for title, rows in shown if rows)


def matches(row: Row, words: str) -> bool:
    """Whether every word is in a row's name, label or source."""
    names = [row.name, row.label, row.source] if isinstance(row, OfferRow) else [row.name]
    text = " ".join(names).lower()
    return all(word in text for word in words.lower().split())


def offers_of(
    entries: Iterable[CatalogueEntry], here: Collection[str] = (), room: Room | None = None
) -> tuple[OfferRow, ...]:
    """The catalogue; `here`: names of prepared models in small letters; `room`: of this machine, if known."""
    return tuple(_offer(entry, here, room) for entry in entries)


def repo_name(repo: str) -> str:
    """The name in the store of what a hub calls `repo`."""
    entry = catalogue.find(repo)
    return entry.name if entry else slug(repo)


def _ready(record: ModelRecord, shelf: Shelf, view: View) -> ReadyRow:
    return ReadyRow(record, record.name in shelf.tuned, record.name == view.loaded)


def _left(leftover: Leftover) -> LeftoverRow:
    return LeftoverRow(leftover, source_of(leftover.name, leftover.record))


def _offer(entry: CatalogueEntry, here: Collection[str], room: Room | None) -> OfferRow:
    return OfferRow(
        origin="catalogue",
        label=entry.label,
        name=entry.name,
        source=entry.name,
        download=entry.download_bytes,
        fit=fit(entry.shape, room, entry.download_bytes) if room else None,
        licence=entry.licence,
        gated=entry.gated,
        ready=entry.name.lower() in here,
    )


def _hub(view: View, here: set[str], taken: set[str]) -> tuple[str, list[Row]]:
    """What a hub found for these very words, and the repository that they name."""
    found = view.found if view.found and view.found.words == view.words.strip() else None
    models = found.models if found else ()
    offers = [offer for model in models if (offer := _found(model, here)) is not None]
    left_out = (found.left_out if found else 0) + len(models) - len(offers)
    words = view.words.strip()
    if _REPO.fullmatch(words) and words.lower() not in {offer.source.lower() for offer in offers}:
        offers.insert(0, _typed(words, here))
    rows: list[Row] = [offer for offer in offers if offer.name.lower() not in taken]
    more = f"; {left_out} more cannot be used here" if left_out else ""
    title = f"On the hub, {len(rows)} for “{words}”{more}" if found else "On the hub"
    return title, rows


def _found(model: FoundModel, here: set[str]) -> OfferRow | None:
    """None where no folder may have the name, as con.x may not on Windows: a hub allows more than a disk."""
    try:
        name = repo_name(model.repo)
    except DecdecError:
        return None
    return OfferRow(
        origin="hub",
        label=model.repo,
        name=name,
        source=model.repo,
        download=model.bytes,
        licence=model.licence,
        gated=model.gated,
        downloads=model.downloads,
        ready=name.lower() in here,
    )


def _typed(repo: str, here: set[str]) -> OfferRow:
    """A repository by its whole name; one whose name cannot be kept would be refused anyway."""
    try:
        name = repo_name(repo)
    except DecdecError:
        name = repo
    return OfferRow("typed", repo, name, repo, ready=name.lower() in here)
