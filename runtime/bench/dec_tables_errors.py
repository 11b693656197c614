"""Figure 4 of the DecDEC paper: what is left of a linear's error as more of its channels are corrected."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch

from runtime.bench.dec_tables_inputs import Seen
from runtime.bench.table import Row, Table
from runtime.evaluate.bases import Made, Maker
from runtime.layers.base import LINEAR_KINDS, LinearKind

# Shares of the channels that are corrected.
SHARES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
SHOWN = (0.01, 0.05, 0.1, 0.2, 0.5)
TOKENS, FIRST_TOKEN = 16, 64
SEED = 0


@dataclass(frozen=True, slots=True)
class Curve:
    """One linear under one base, at SHARES: mean squared error left, as a share of the uncorrected one.

    best: channels by descending magnitude; random: in random order. magnitude: sorted |x / c| as a share of
    the largest, at the same places.
    """

    block: int
    kind: LinearKind
    base: str
    best: list[float]
    random: list[float]
    magnitude: list[float]

    def at(self, share: float, which: Sequence[float]) -> float:
        """The value at one of SHARES."""
        return which[SHARES.index(share)]


def curves(seen: Seen, makers: Mapping[str, Maker]) -> Iterator[Curve]:
    """Of every linear of a block under every base."""
    made = {name: make(seen.source) for name, make in makers.items()}
    for kind in LINEAR_KINDS:
        for name, block in made.items():
            yield _curve(seen, kind, name, block[kind])


def errors_table(found: Sequence[Curve]) -> Table:
    """The curves in figures."""
    rows: list[Row] = [
        {
            "block": curve.block + 1,
            "linear": curve.kind,
            "base": curve.base,
            **{f"best {100 * share:g} %": curve.at(share, curve.best) for share in SHOWN},
            **{f"random {100 * share:g} %": curve.at(share, curve.random) for share in SHOWN},
            "size at 1 %": curve.at(0.01, curve.magnitude),
            "size at 10 %": curve.at(0.1, curve.magnitude),
        }
        for curve in found
    ]
    notes = [
        "Mean squared error of the output that is left when so many channels have their exact weights, as a"
        f" share of the uncorrected error; mean over {TOKENS} tokens. Best: by descending magnitude of the"
        " input as the base sees it, random: in random order, where the error falls evenly. Size: the input's"
        " magnitude there as a share of the largest.",
    ]
    return Table("figure 4", "Error against channels corrected (paper: figure 4)", rows, notes)


def _curve(seen: Seen, kind: LinearKind, name: str, made: Made) -> Curve:
    weight, columns = torch.cat(seen.source.parts[kind]), made.columns
    lost = (weight if columns is None else weight * columns) - made.weight
    x = seen.text.texts[kind][0]
    x = x[torch.linspace(min(FIRST_TOKEN, len(x) - 1), len(x) - 1, TOKENS).long()]
    scaled = x if columns is None else x / columns
    generator = torch.Generator().manual_seed(SEED)
    best = scaled.abs().argsort(dim=1, descending=True)
    random = torch.rand(scaled.shape, generator=generator).argsort(dim=1)
    magnitude = scaled.abs().gather(1, best)
    places = [min(_corrected(share, x.shape[1]), x.shape[1] - 1) for share in SHARES]
    levels = (magnitude[:, places] / magnitude[:, :1].clamp(min=1e-30)).mean(0)
    return Curve(
        seen.source.index,
        kind,
        name,
        errors_left(lost, scaled, best),
        errors_left(lost, scaled, random),
        levels.tolist(),
    )


def errors_left(lost: torch.Tensor, x: torch.Tensor, order: torch.Tensor) -> list[float]:
    """At SHARES, the error of lost [n_out, n_in] on x [tokens, n_in] relative to that at 0.

    order int64 [tokens, n_in]: in which order the channels of a token are corrected.
    """
    ends = [_corrected(share, x.shape[1]) for share in SHARES]
    totals = torch.zeros(len(SHARES), dtype=torch.float64)
    for row, channels in zip(x, order, strict=True):
        left = torch.zeros(len(lost))
        for number in reversed(range(len(ends))):
            stop = ends[number + 1] if number + 1 < len(ends) else len(channels)
            part = channels[ends[number] : stop]
            left = left + lost[:, part] @ row[part]
            totals[number] += left.double().square().mean()
    return (totals / totals[0].clamp(min=1e-300)).tolist()


def _corrected(share: float, n_in: int) -> int:
    return round(share * n_in)
