"""Figure 5 of the DecDEC paper: outliers move from step to step, and a fixed choice misses them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import torch

from runtime.bench.dec_tables_inputs import Seen
from runtime.bench.table import Row, Table
from runtime.layers.base import LINEAR_KINDS, LinearKind

STEPS, FIRST_STEP = 100, 128
CHANNELS = 512
SHARES = (0.01, 0.05)


@dataclass(frozen=True, slots=True)
class Outliers:
    """A linear's inputs over decode steps.

    recall: by share of channels, how much of the true largest a fixed choice finds in each step.
    places: of the largest 5 % in each step, those among the first CHANNELS channels.
    """

    block: int
    kind: LinearKind
    recall: dict[float, list[float]]
    places: list[list[int]]


def outliers(seen: Seen) -> list[Outliers]:
    """Of every linear of a block."""
    return [_outliers(seen, kind) for kind in LINEAR_KINDS]


def outliers_table(found: Sequence[Outliers]) -> Table:
    """Recall in figures: mean, and lowest and highest of a step."""
    rows: list[Row] = [{"block": one.block + 1, "linear": one.kind, **_figures(one.recall)} for one in found]
    notes = [
        f"How many of the truly largest 1 % and 5 % of the input channels, in each of {STEPS} steps (one"
        " token of the text after the other), are among the same number chosen once, by mean square over the"
        " calibration prompts. Mean over steps, lowest and highest step. The paper: about 20 % for down"
        " projections.",
    ]
    return Table("figure 5", "Recall of a fixed choice of channels (paper: figure 5)", rows, notes)


def _outliers(seen: Seen, kind: LinearKind) -> Outliers:
    x = seen.text.texts[kind][0]
    x = x[min(FIRST_STEP, max(len(x) - STEPS, 0)) :][:STEPS].abs()
    calibration = seen.source.inputs
    assert calibration is not None
    known = calibration.statistics(kind, None).mean_square
    recall = {share: static_recall(x, known, max(1, round(share * x.shape[1]))) for share in SHARES}
    largest = x.topk(max(1, round(SHARES[-1] * x.shape[1])), dim=1).indices
    places = [sorted(channel for channel in row if channel < CHANNELS) for row in largest.tolist()]
    return Outliers(seen.source.index, kind, recall, places)


def static_recall(x: torch.Tensor, importance: torch.Tensor, count: int) -> list[float]:
    """For each row of x [steps, n_in], not negative: the share of its `count` largest that are also the
    `count` largest of importance [n_in].
    """
    fixed = torch.zeros(x.shape[1], dtype=torch.bool)
    fixed[importance.topk(count).indices] = True
    shares: list[float] = fixed[x.topk(count, dim=1).indices].float().mean(1).tolist()
    return shares


def _figures(recall: dict[float, list[float]]) -> Row:
    found: Row = {}
    for share, steps in recall.items():
        name = f"top {100 * share:g} %"
        found |= {
            name: fmean(steps),
            f"{name}, lowest": min(steps),
            f"{name}, highest": max(steps),
        }
    return found
