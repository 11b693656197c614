"""What a model's line says, by how much room there is, and what is said of it below the list."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from app import format
from app.ranking import Offer
from runtime.protocol.bases import DEFAULT
from runtime.sources.fit import Fit

SPEED_CELLS, SIZE_CELLS, VERDICT_CELLS = 7, 8, 18
# Widths from which a column has room.
WIDE, MEDIUM = 84, 50
PREDICTED = "Speeds are predicted from what was measured here."


@dataclass(frozen=True, slots=True)
class Columns:
    """Which columns a width has room for; `label`: cells of the first one."""

    label: int
    speed: bool
    sizes: bool

    @classmethod
    def within(cls, width: int, longest_label: int) -> Columns:
        """The columns of a list so many cells wide."""
        label = min(longest_label, max(10, width - SPEED_CELLS - 4))
        return cls(label, width >= MEDIUM, width >= WIDE)

    def header(self) -> str:
        """The titles above the list."""
        parts = [f"{'':{self.label + 2}}"]
        parts += [f"{'~tok/s':>{SPEED_CELLS}}"] if self.speed else []
        parts += [f"{'memory':>{SIZE_CELLS}}"] if self.sizes else []
        parts += [f" {'on this machine':<{VERDICT_CELLS}}"]
        parts += [f"{'download':>{SIZE_CELLS}}"] if self.sizes else []
        return " ".join(parts)

    def cells(self, offer: Offer) -> Iterator[tuple[str, str]]:
        """Text and part of every column."""
        yield mark(offer), "mark"
        yield f" {offer.label[: self.label]:<{self.label}}", "name" if offer.fits else "missing"
        if self.speed:
            yield f" {_speed(offer):>{SPEED_CELLS}}", "facts"
        if self.sizes:
            yield f" {format.size(offer.fit.memory) if offer.fit else '':>{SIZE_CELLS}}", "facts"
        yield f"  {offer.verdict:<{VERDICT_CELLS}}", "facts" if offer.fits else "missing"
        if self.sizes and offer.entry:
            yield f" {format.size(offer.entry.download_bytes):>{SIZE_CELLS}}", "facts"
        if state := _state(offer):
            yield f"  {state}", "ready" if offer.prepared else "begun"
        if self.sizes and offer.entry:
            yield f"  {offer.entry.licence}", "facts"


def mark(offer: Offer) -> str:
    """One character that says what matters most."""
    if offer.begun:
        return "◐"
    if offer.prepared:
        return "✓"
    return "★" if offer.recommended else " " if offer.fits else "✗"


def facts(offer: Offer) -> list[str]:
    """Sentences about a model, the most telling first."""
    return [sentence for sentence in (_standing(offer), _memory(offer), _fetching(offer)) if sentence]


def warning(offer: Offer) -> str:
    """Why a model that does not fit is not taken at once."""
    lacks = offer.fit.lacks if offer.fit else ()
    missing = " and ".join(f"{format.size(lack.bytes)} of {_PLACES[lack.where]}" for lack in lacks)
    return f"{offer.label} does not fit: {missing} are missing. Enter again takes it all the same."


_PLACES = {"VRAM": "the GPU's memory", "RAM": "memory", "disk": "disk space"}


def _speed(offer: Offer) -> str:
    speed = offer.tokens_per_s
    if speed is None or not offer.fits:
        return ""
    return f"~{speed:.{0 if speed >= 9.95 else 1}f}"


def _state(offer: Offer) -> str:
    if offer.begun:
        return "begun: Enter goes on"
    if offer.prepared:
        return "prepared"
    return "needs a token" if offer.entry and offer.entry.gated else ""


def _standing(offer: Offer) -> str:
    if offer.begun:
        return f"Continue preparing {offer.label}: what is on disk is used."
    if not offer.recommended:
        return ""
    on_gpu = offer.fit is not None and offer.fit.host > 0
    return f"Recommended: {'the largest that fits and is fast' if on_gpu else 'soonest ready'}."


def _memory(offer: Offer) -> str:
    fit, entry = offer.fit, offer.entry
    if fit is None or entry is None:
        return ""
    return f"{_count(entry.parameters)} weights at {bits(fit)}: {needs(fit)}."


def bits(fit: Fit) -> str:
    """How many bits a weight has in the form that fits."""
    return "4 bits" if fit.base == DEFAULT.name else "3 bits"


def needs(fit: Fit) -> str:
    """The memory that a model needs on this machine, by place."""
    if not fit.host:
        return f"{format.size(fit.memory)} of RAM"
    share = "" if fit.corrected >= 1 else f" ({100 * fit.corrected:.0f} % of it is there)"
    return f"{format.size(fit.memory)} of VRAM, {format.size(fit.host)} of RAM for corrections{share}"


def _fetching(offer: Offer) -> str:
    entry = offer.entry
    if entry is None or offer.prepared:
        return ""
    token = " Its hub asks for a token." if entry.gated else ""
    disk = f", {format.size(offer.fit.disk)} of disk" if offer.fit else ""
    return f"{format.size(entry.download_bytes)} to fetch{disk}. {entry.licence}.{token}"


def _count(weights: int) -> str:
    if weights >= 1e9:
        return f"{weights / 1e9:.1f} billion"
    return f"{weights / 1e6:.0f} million"
