"""The models worth offering on this machine, the best fit first."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from app import format
from app.surroundings import Surroundings
from runtime.protocol.bases import DEFAULT
from runtime.sources.catalogue import CatalogueEntry
from runtime.sources.fit import Fit, fit
from runtime.sources.speed import tokens_per_s

# Slower answers are read faster than they are written.
COMFORTABLE_TOKENS_PER_S = 10.0
_BITS = {"awq4": "4-bit", "int8x3": "3-bit"}


@dataclass(frozen=True, slots=True)
class Offer:
    """A model in the list. `source`: what a source resolves; `entry` and `fit`: None where nothing is known.

    begun: an earlier run has begun to prepare it.
    """

    name: str
    label: str
    source: str
    entry: CatalogueEntry | None = None
    fit: Fit | None = None
    tokens_per_s: float | None = None
    prepared: bool = False
    begun: bool = False
    recommended: bool = False

    @property
    def fits(self) -> bool:
        """Whether nothing is known to be missing."""
        return self.fit is None or not self.fit.lacks or self.prepared

    @property
    def base(self) -> str:
        """The base to prepare it with."""
        return self.fit.base if self.fit else DEFAULT.name

    @property
    def verdict(self) -> str:
        """What this machine can do with it, or what it lacks; empty where nothing is known."""
        if self.fit is None:
            return ""
        if not self.fits:
            lack = max(self.fit.lacks, key=lambda lack: lack.bytes)
            return f"lacks {format.size(lack.bytes)} {lack.where}"
        bits = _BITS[self.fit.base]
        return f"{bits}, lossless" if self.fit.lossless else bits

    @property
    def comfortable(self) -> bool:
        """Whether answers come at least as fast as they are read; not known counts as so."""
        return self.tokens_per_s is None or self.tokens_per_s >= COMFORTABLE_TOKENS_PER_S


@dataclass(frozen=True, slots=True)
class Known:
    """What is on this machine: names of prepared models, and sources by name of those that were begun."""

    ready: Collection[str] = ()
    begun: tuple[tuple[str, str], ...] = ()


def ranked(
    entries: Iterable[CatalogueEntry], default: str, known: Known, around: Surroundings | None
) -> list[Offer]:
    """Begun ones, the recommended one, prepared ones, what fits by size with slow ones behind, the rest by
    what they lack. Where nothing is known of the machine the default leads and the catalogue's order stays.
    """
    offers = _recommended([_offer(entry, known, around) for entry in entries], default, around)
    named = {offer.name for offer in offers}
    others = [*((name, name) for name in known.ready), *known.begun]
    extra = {
        name: Offer(name, name, source, prepared=name in known.ready, begun=name not in known.ready)
        for name, source in others
        if name not in named
    }
    return sorted([*extra.values(), *offers], key=_place)


def _offer(entry: CatalogueEntry, known: Known, around: Surroundings | None) -> Offer:
    offer = Offer(
        entry.name,
        entry.label,
        entry.name,
        entry,
        prepared=entry.name in known.ready,
        begun=entry.name in dict(known.begun),
    )
    if around is None:
        return offer
    found = fit(entry.shape, around.room, 0 if offer.prepared else entry.download_bytes)
    speed = tokens_per_s(entry.shape, found.base, around.rates) if around.rates else None
    return replace(offer, fit=found, tokens_per_s=speed)


def _recommended(offers: list[Offer], default: str, around: Surroundings | None) -> list[Offer]:
    """Mark one: on a GPU the largest that fits whole, is fast enough and asks for no token; else the default,
    for without a GPU the others take long to prepare.
    """
    good = [offer for offer in offers if around and around.gpu and _is_good(offer)]
    best = max(good, key=_parameters, default=None)
    name = best.name if best else default
    return [replace(offer, recommended=True) if offer.name == name else offer for offer in offers]


def _is_good(offer: Offer) -> bool:
    if offer.entry is None or offer.fit is None or offer.entry.gated or not offer.fits:
        return False
    whole = offer.fit.base == DEFAULT.name and offer.fit.corrected >= 1.0
    return whole and offer.comfortable and offer.tokens_per_s is not None


def _parameters(offer: Offer) -> int:
    return offer.entry.parameters if offer.entry else 0


def _place(offer: Offer) -> tuple[bool | float, ...]:
    missing = sum(lack.bytes for lack in offer.fit.lacks) if offer.fit and not offer.fits else 0
    size = -_parameters(offer) if offer.fit and offer.comfortable else 0
    speed = -(offer.tokens_per_s or 0.0) if offer.fit and not offer.comfortable else 0.0
    behind = (not offer.begun, not offer.recommended, not offer.prepared)
    return (*behind, missing > 0, missing, not offer.comfortable, size, speed)
