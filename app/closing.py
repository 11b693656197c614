"""The wizard's last card: what every position of the slider brings on this machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app import format
from app.slider import DETENTS
from app.surroundings import Surroundings
from app.tune_findings import DetentRow, Token
from runtime.protocol.events import KChunk
from runtime.sources import catalogue
from runtime.sources.fit import fit
from runtime.sources.speed import lossless_tokens_per_s, tokens_per_s

PLAIN = "the low-bit model as it is, the fastest"
NOTHING = "nothing fits into so little: as at 0 %"
LOSSLESS = "the INT8 weights themselves, nothing is lost"
# From this share of a token's time on, products are as good as all of it.
NEARLY_ALL = 0.9
NO_ROOM = "the INT8 weights do not fit beside the others here"


@dataclass(frozen=True, slots=True)
class Position:
    """A line of the card: where the slider stands, tokens/s, tables, and what they mean."""

    name: str
    speed: str
    table: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Lossless:
    """What is foretold of the slider's last stop. fits: None where nobody knows; relative: to the base."""

    fits: bool | None = None
    relative: float | None = None


def foretold(model: str, base: str, around: Surroundings | None) -> Lossless:
    """Of a model of the catalogue on a machine that was measured; nothing is known of others."""
    entry = catalogue.find(model)
    if entry is None or around is None:
        return Lossless()
    fits = fit(entry.shape, around.room, 0).lossless
    if around.rates is None:
        return Lossless(fits)
    speed = lossless_tokens_per_s(entry.shape, around.rates)
    return Lossless(fits, speed / tokens_per_s(entry.shape, base, around.rates))


def share(token: Token | None) -> str:
    """What a position is a percentage of, where that is clearly less than all; empty elsewhere."""
    if token is None or token.of_us >= NEARLY_ALL * token.us:
        return ""
    pct = 100 * token.of_us / token.us
    last = format.percent(DETENTS[-1])
    return (
        f"Percents are of the low-bit products, which take {format.percent(pct)} of a token's time here: "
        f"{last} of them is {format.percent(pct * DETENTS[-1] / 100)} of the whole."
    )


def positions(rows: Sequence[DetentRow], lossless: Lossless) -> list[Position]:
    """The detents, and lossless."""
    found = list(_detents(rows))
    base = rows[0].tokens_per_s if rows else None
    if lossless.fits is False:
        return [*found, Position("lossless", "", "", NO_ROOM)]
    speed = base * lossless.relative if base and lossless.relative else None
    meaning = LOSSLESS if lossless.fits else f"{LOSSLESS}, where memory allows"
    return [*found, Position("lossless", _speed(speed), "", meaning)]


def _detents(rows: Sequence[DetentRow]) -> Iterator[Position]:
    before: DetentRow | None = None
    for row in rows:
        table = _table(row.k_chunk) if row.k_chunk.total else ""
        yield Position(format.percent(row.pct), _speed(row.tokens_per_s), table, _meaning(row, before))
        before = row


def _meaning(row: DetentRow, before: DetentRow | None) -> str:
    if not row.k_chunk.total:
        return PLAIN if before is None else NOTHING
    if before is not None and row.k_chunk == before.k_chunk:
        return f"no more than at {format.percent(before.pct)}"
    if row.channels is None or row.share is None:
        return "corrected anew for every token"
    free = "free: " if row.pct == 0 else ""
    return f"{free}{format.number(row.channels)} channels a token, {format.percent(100 * row.share)} of all"


def _table(table: KChunk) -> str:
    return f"{table.qkv}·{table.o}·{table.gate_up}·{table.down}"


def _speed(tokens_per_s: float | None) -> str:
    return format.speed(tokens_per_s) if tokens_per_s else ""
