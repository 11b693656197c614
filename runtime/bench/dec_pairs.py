"""One linear at a time, as a step calls it: corrected against not; its free part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from runtime.bench.dec_linears import LinearBlock
from runtime.bench.shapes import LLAMA
from runtime.layers.base import LinearKind
from runtime.tuner.fetching import FetchShape, launches, rungs
from runtime.tuner.measurer import NO_PROGRAMS, Launch
from runtime.tuner.random_weights import makers
from runtime.tuner.replays import Replay

Row = dict[str, Any]
LIMITS = (2.5, 5.0, 10.0, 20.0)
# Base rows over residual outputs: the device as it is, and, on an H200, an RTX 4090 and an RTX 4050 Laptop.
RATIOS = (1.0, 2.7, 6.7)
# What a link of 16 lanes of the fifth generation gives; efficiencies count against it.
NOMINAL_GB_S = 50.0
# Knees of the paper's 3-bit models by card, and the ratio of base rows that stands in for it.
PAPER_KNEES = {"H200": (10, 1.0), "RTX 4090": (24, 2.7), "RTX 4070S": (49, 5.1), "RTX 4050M": (64, 6.7)}
_FARTHEST = 1.3
_REPLAYS = 11


@dataclass(frozen=True, slots=True)
class Pair:
    """base_us: input and product. added: microseconds more by launch and k_chunk, the smallest first."""

    shape: FetchShape
    base_us: float
    added: Mapping[Launch, Mapping[int, float]]

    def best(self, limit_pct: float) -> tuple[int, Launch]:
        """The largest k_chunk that stays within a slowdown, and its launch; 0: nothing does."""
        allowed = limit_pct / 100 * self.base_us
        points = ((k, n, us) for n, curve in self.added.items() for k, us in curve.items())
        fitting = [(k, n) for k, n, us in points if us <= allowed]
        return max(fitting, default=(0, NO_PROGRAMS), key=lambda found: (found[0], -found[1].programs))

    def efficiency(self, k_chunk: int) -> float:
        """Bytes fetched over what the link could have brought in the base's time."""
        return self.shape.fetched_bytes(k_chunk) / (self.base_us * NOMINAL_GB_S * 1e3)

    def fastest_gb_s(self) -> float:
        """Highest rate of any measurement, over the whole time of the pair."""
        rates = [
            self.shape.fetched_bytes(k) / (self.base_us + us) / 1e3
            for curve in self.added.values()
            for k, us in curve.items()
        ]
        return max(rates, default=0.0)


def measure_pair(kind: LinearKind, base: str, ratio: float, device: torch.device, link_gb_s: float) -> Pair:
    """All ways of fetching, k_chunk raised until the pair takes a third longer."""
    block = LinearBlock({kind: LLAMA.linears[kind]}, makers(base, device), device, ratio)
    reference = Replay(block.calls({}))
    base_us = reference.microseconds(21) / block.copies
    shape = block.shapes[kind]
    added: dict[Launch, dict[int, float]] = {}
    for launch, config in launches(shape, link_gb_s).items():
        graph, curve = Replay(block.calls({kind: config})), added.setdefault(launch, {})
        for k in rungs(shape, config, _FARTHEST * base_us, link_gb_s):
            block.start({kind: k})
            curve[k] = graph.added_to(reference, _REPLAYS)[0] / block.copies
            if curve[k] > (_FARTHEST - 1) * base_us:
                break
    return Pair(shape, base_us, added)


def pair_rows(device: torch.device, link_gb_s: float, base: str = "awq4") -> Iterator[Row]:
    """A row for every linear and ratio: the best k_chunk and its efficiency within each slowdown."""
    for ratio in RATIOS:
        for kind in LLAMA.linears:
            yield _pair_row(kind, ratio, measure_pair(kind, base, ratio, device, link_gb_s))
            torch.cuda.empty_cache()


def knee_rows(device: torch.device, link_gb_s: float, base: str = "awq3") -> Iterator[Row]:
    """The paper's knees beside those measured here with base rows that stand in for its cards."""
    for card, (paper, ratio) in PAPER_KNEES.items():
        row: Row = {"card": card, "base rows": f"x{ratio:g}", "paper's knee": paper}
        for kind in ("gate_up", "down"):
            pair = measure_pair(kind, base, ratio, device, link_gb_s)
            row |= {f"{kind} <= {limit:g} %": pair.best(limit)[0] for limit in LIMITS[:3]}
            within = pair.base_us * link_gb_s * 1e3 / pair.shape.fetched_bytes(1)
            row[f"{kind}, link busy as long as the base"] = int(within)
        yield row
        torch.cuda.empty_cache()


def describe(launch: Launch) -> str:
    """Programs, rows in flight and splits, short."""
    return f"n_tb {launch.programs}: {launch.rows}x{launch.splits}"


def _pair_row(kind: LinearKind, ratio: float, pair: Pair) -> Row:
    row: Row = {"base rows": f"x{ratio:g}", "linear": kind, "base us": pair.base_us}
    row["start %"] = 100 * min(curve[min(curve)] for curve in pair.added.values() if curve) / pair.base_us
    for limit in LIMITS:
        k, launch = pair.best(limit)
        row[f"k <= {limit:g} %"] = f"{k} ({describe(launch)})" if k else 0
        row[f"efficiency <= {limit:g} %"] = pair.efficiency(k)
    return {**row, "most GB/s": pair.fastest_gb_s()}
