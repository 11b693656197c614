"""Figures 13 and 16 and table 2 of the DecDEC paper: perplexity by channels, their choice, residual bits."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec

from runtime import locations
from runtime.bench.table import Row, Table
from runtime.evaluate.jobs import score
from runtime.evaluate.request import BaseWish, Request, ResidualBits, Select
from runtime.evaluate.request import Row as Wanted
from runtime.evaluate.source import locate
from runtime.int8x.origin import fingerprint
from runtime.progress import JobContext
from runtime.store.atomic import write_json

K_CHUNKS = (8, 16, 32, 64, 128)
OTHER_SELECTS: tuple[Select, ...] = ("exact", "static", "random")
SELECTS: tuple[Select, ...] = ("exact", "bucket", "static", "random")
WIDTHS: tuple[ResidualBits, ...] = (2, 4, 8, "exact")
# What a weight of an exact residual takes in the paper: FP16.
EXACT_BITS = 16
SERVED: ResidualBits = 4
# Raised when the same request would give other figures.
VERSION = 1

Measured = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Scope:
    """What is evaluated: `bases` in figure 13, of them `controls` in figure 16 and `widths` in table 2."""

    request: Request
    controls: tuple[BaseWish, ...]
    widths: tuple[BaseWish, ...]

    def rows(self, base: BaseWish) -> Iterator[Wanted]:
        """Everything that the tables want of a base."""
        for k in (0, *K_CHUNKS):
            yield Wanted(base, k, "bucket", SERVED)
        if base in self.controls:
            yield from (Wanted(base, k, select, SERVED) for select in OTHER_SELECTS for k in K_CHUNKS)
        if base in self.widths:
            for width in WIDTHS:
                if width != SERVED:
                    yield from (Wanted(base, equal_transfer(k, width), "bucket", width) for k in K_CHUNKS)


def equal_transfer(k_chunk: int, width: ResidualBits) -> int:
    """How many channels of another width cross the link in the time of `k_chunk` with 4 bits."""
    return k_chunk * int(SERVED) // (EXACT_BITS if width == "exact" else width)


def measure(scope: Scope, folder: Path, ctx: JobContext) -> Measured:
    """Results of every row, base by base; a base that was evaluated before is read from its file.

    folder: where sensitivities are kept.
    """
    request, found = scope.request, Measured()
    source, text = fingerprint(locate(request.model, ctx)), Path(request.text).read_bytes()
    for base in request.bases:
        rows = list(scope.rows(base))
        of_base = msgspec.structs.replace(request, bases=(base,), model="", text="")
        path = _file(
            [VERSION, source, hashlib.sha256(text).hexdigest(), of_base, [asdict(row) for row in rows]]
        )
        if not path.exists():
            one = msgspec.structs.replace(request, bases=(base,))
            write_json(path, score(one, rows, folder, ctx)[1])
        found += msgspec.json.decode(path.read_bytes(), type=Measured)
    return found


def one(
    measured: Measured, name: str, k: int, select: str = "bucket", width: ResidualBits = SERVED
) -> dict[str, Any] | None:
    """The result of one row, None where it was not measured; without channels there is one of every base."""
    wanted = (name, k, "bucket" if k == 0 else select, width)
    keys = ("name", "k_chunk", "select", "residual_bits")
    return next((row for row in measured if tuple(row[key] for key in keys) == wanted), None)


def perplexity_tables(measured: Measured) -> list[Table]:
    """Figure 13: perplexity and KL against k_chunk for every base."""
    names = list(dict.fromkeys(row["name"] for row in measured))
    tables = []
    for figure, title in (("ppl", "Perplexity"), ("kl", "KL to the source")):
        rows: list[Row] = []
        for name in names:
            of = {k: one(measured, name, k) for k in (0, *K_CHUNKS)}
            figures = {f"k {k}": found[figure] if found else None for k, found in of.items()}
            rows.append({"base": name, "bit/w": (of[0] or {}).get("bits_per_weight"), **figures})
        tables.append(Table(f"figure 13, {figure}", f"{title} against k_chunk (paper: figure 13)", rows))
    tables[0].notes.append(
        "The paper, WikiText, 3-bit AWQ at k_chunk 0 and 8: Llama-3-8B 10.15, 9.63; Phi-3-medium 5.96, 5.53."
    )
    return tables


def selection_table(measured: Measured, controls: Sequence[BaseWish]) -> Table:
    """Figure 16: perplexity and recall of the exact choice by how channels are chosen."""
    rows: list[Row] = []
    for base in controls:
        for select in SELECTS:
            of = {k: one(measured, base.name, k, select) for k in K_CHUNKS}
            ppl = {f"k {k}": found["ppl"] if found else None for k, found in of.items()}
            recall = {f"recall {k}": found["recall"] if found else None for k, found in of.items()}
            rows.append({"base": base.name, "select": select, **ppl, **recall})
    notes = [
        "Bucket: the paper's approximate choice; recall: the share of the exact choice that is found. Static:"
        " by mean square on calibration prompts. The paper: recall about 0.8 by buckets, 0.3 static."
    ]
    return Table("figure 16", "How channels are chosen (paper: figure 16)", rows, notes)


def width_table(measured: Measured, bases: Sequence[BaseWish]) -> Table:
    """Table 2: perplexity by bits of the residual, at equal transfer."""
    rows: list[Row] = []
    for base in bases:
        for width in WIDTHS:
            of = {k: one(measured, base.name, equal_transfer(k, width), "bucket", width) for k in K_CHUNKS}
            ppl = {f"as k {k}": found["ppl"] if found else None for k, found in of.items()}
            rows.append({"base": base.name, "residual": width if width != "exact" else "exact, as 16", **ppl})
    notes = [
        "In a column every row moves the same bytes: k_chunk as named with 4 bits, twice as many channels"
        " with 2, half with 8, a quarter of exact ones, counted as 16 bits. The paper: 4 bits are best, or"
        " nearly."
    ]
    return Table("table 2", "Bits of the residual at equal transfer (paper: table 2)", rows, notes)


def _file(key: list[Any]) -> Path:
    digest = hashlib.sha256(msgspec.json.encode(key)).hexdigest()[:24]
    return locations.evaluations() / f"decdec-{digest}.json"
