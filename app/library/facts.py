"""Facts about one model of the list, for people: a title and a text each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app import format
from app.library.pulls import Pull, PullState
from app.library.rows import LeftoverRow, OfferRow, PullRow, ReadyRow, Row
from app.offer_lines import needs
from app.text import one_line
from runtime.details.parts import parts
from runtime.errors import DecdecError
from runtime.protocol.quality import Quality
from runtime.sources import catalogue
from runtime.sources.catalogue import WheelOrigin
from runtime.sources.recorded import kept_of
from runtime.store import ModelRecord
from runtime.store.leftovers import tree_bytes

Fact = tuple[str, str]
Facts = tuple[Fact, ...]
TOKEN_HELP = "its licence must be accepted on the hub, and HF_TOKEN set to a token of yours"


def facts(row: Row) -> Facts:
    """What is known of a row without any work."""
    match row:
        case ReadyRow():
            return of_record(row.record, row.tuned)
        case PullRow():
            return _of_pull(row.pull)
        case LeftoverRow():
            return _of_leftover(row)
        case OfferRow():
            return _of_offer(row)


def of_record(record: ModelRecord, tuned: bool) -> Facts:
    """A prepared model by what its maker wrote down."""
    given = record.record
    rows = [
        ("Source", one_line(record.source)),
        ("Licence", licence(record)),
        ("On disk", f"{format.size(record.bytes)}{_split(record)}"),
        ("INT8-X", f"{record.bits_per_weight:.2f} bit/w{_quality(given)}"),
        ("Bases", ", ".join(map(one_line, given.get("bases", []))) or "none: it answers lossless only"),
        ("Calibrated on", _texts(given)),
        ("Slider", "tuned" if tuned else "not tuned: F9 measures this device"),
        ("Download", _download(given)),
    ]
    return tuple(row for row in rows if row[1])


def licence(record: ModelRecord) -> str:
    """The licence that was recorded, or that the catalogue names."""
    entry = catalogue.find(record.name)
    return one_line(str(record.record.get("licence") or (entry.licence if entry else "not known")))


def of_details(result: Mapping[str, Any]) -> Facts:
    """What the job "model_details" found in the files."""
    shape = f"{result['family']}, {result['layers']} layers of {format.number(result['hidden'])}"
    sizes = " · ".join(f"{one_line(name)} {format.size(size)}" for name, size in result["parts"].items())
    tuning = [_profile(profile) for profile in result["profiles"]]
    return (
        ("Architecture", one_line(f"{shape}, {format.compact(result['parameters'])} weights")),
        ("Context", f"{format.number(result['context'])} tokens at most"),
        ("Parts", sizes),
        *(("Tuning", text) for text in tuning or ["not tuned on any device yet"]),
    )


def _profile(profile: Mapping[str, Any]) -> str:
    totals = {pct: sum(table.values()) for pct, table in profile["detents"].items()}
    steps = " · ".join(f"{total} at {pct} %" for pct, total in totals.items())
    text = f"{profile['base']} on {profile['device']} ({profile['processor']}), {profile['day']}"
    unused = f"; not used: {profile['why_not']}" if profile["why_not"] else ""
    return one_line(f"{text}; channels per 1024, all four linears together: {steps}{unused}")


def _split(record: ModelRecord) -> str:
    """The largest parts in brackets; nothing where the files cannot be read now."""
    try:
        sizes = parts(record)
    except DecdecError:
        return ""
    return f" ({', '.join(f'{name} {format.size(size)}' for name, size in list(sizes.items())[:3])})"


def _quality(given: Mapping[str, Any]) -> str:
    try:
        return f", made for: {Quality.parse(given['quality']).describe()}" if given.get("quality") else ""
    except DecdecError:
        return ""


def _texts(given: Mapping[str, Any]) -> str:
    return {"prompts": "the program's own prompts", "continuations": "its own continuations"}.get(
        str(given.get("texts", "")), ""
    )


def _download(given: Mapping[str, Any]) -> str:
    folder = kept_of(given)
    return f"{format.size(tree_bytes(folder))} of its source are kept too" if folder else ""


def _of_pull(pull: Pull) -> Facts:
    rows = [("Source", one_line(pull.source)), ("State", pull.stage)]
    if newest := pull.newest:
        rows.append(
            (format.step_title(newest.step), f"{format.amount(newest)} {format.pace(newest)}".strip())
        )
    if pull.problem:
        rows.append(("Problem", one_line(pull.problem)))
    if pull.state in (PullState.PAUSED, PullState.FAILED):
        kept = "what was made is kept" if pull.imported else "what was fetched and made is kept"
        rows.append(("On disk", f"{format.size(pull.here)}: {kept}" if pull.here else kept))
    return tuple(rows)


def _of_leftover(row: LeftoverRow) -> Facts:
    source = one_line(str(row.leftover.record.get("source", ""))) or "not known"
    damaged = row.leftover.state == "damaged"
    again = "only what is bad is made again" if damaged else "what is there is kept and taken up"
    return (
        ("State", row.leftover.state),
        ("Source", source),
        ("On disk", format.size(row.leftover.bytes)),
        ("Enter", again if row.source else "nothing: it is not known what it was made from"),
    )


def _of_offer(row: OfferRow) -> Facts:
    rows = [
        ("Source", f"hub {one_line(row.source)}" if row.origin != "catalogue" else _origin(row.source)),
        ("Licence", one_line(row.licence)),
        ("Download", format.size(row.download) if row.download else ""),
        ("Memory", needs(row.fit) if row.fit else ""),
        ("Fetched", f"{format.compact(row.downloads)} times in a month" if row.downloads else ""),
        ("Gated", TOKEN_HELP if row.gated else ""),
        ("State", "prepared" if row.ready else "not here yet"),
    ]
    return tuple(fact for fact in rows if fact[1])


def _origin(name: str) -> str:
    entry = catalogue.find(name)
    if entry is None or isinstance(entry.origin, WheelOrigin):
        return "the Python package index" if entry else ""
    return f"hub {entry.origin.repo}"
