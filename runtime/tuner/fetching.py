"""Which ways of fetching are worth trying for a linear, and where their staircases have steps: arithmetic."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from kernels.gpu.dec.fetch import SEGMENT_WORDS, WORD_OUTPUTS, FetchConfig
from runtime.layers.base import LINEAR_KINDS, LinearKind
from runtime.tuner.measurer import Launch

CHUNK = 1024
# Bytes that a warp has in flight for each row it reads.
SEGMENT_BYTES = 4 * SEGMENT_WORDS
# Of a read of host memory beside a product. Requests that the link cannot serve in this time wait where the
# product's own pass: on an H200 twice as many double what a correction costs.
LATENCY_US = 2.2
SHARES = (0.5, 0.75, 1.0, 1.5, 2.0)
MOST_ROWS, MOST_SPLITS = 8, 16
# Half a round costs as much as a whole one until the link's bandwidth counts.
_ROUNDS_WITH_MIDDLES = 8
_GROWTH = 1.06


@dataclass(frozen=True, slots=True)
class FetchShape:
    """A linear as its fetch sees it: residual outputs and inputs, and warps in a program of its product."""

    n_out: int
    n_in: int
    warps: int

    @property
    def segments(self) -> int:
        """Segments of a row, one a warp."""
        return -(-self.n_out // (WORD_OUTPUTS * SEGMENT_WORDS))

    @property
    def row_bytes(self) -> int:
        """Bytes of one channel's row."""
        return 4 * -(-self.n_out // WORD_OUTPUTS)

    def listed(self, k_chunk: int) -> float:
        """Rows for k_chunk."""
        return k_chunk * self.n_in / CHUNK

    def fetched_bytes(self, k_chunk: int) -> float:
        """Bytes that cross the link for k_chunk."""
        return self.listed(k_chunk) * self.row_bytes


def launches(shape: FetchShape, link_gb_s: float) -> dict[Launch, FetchConfig]:
    """Ways to fetch that keep about what the link needs under way, from half of it to twice as much."""
    needed = link_gb_s * 1e3 * LATENCY_US / (SEGMENT_BYTES * shape.segments)
    configs = (_config(needed * share) for share in SHARES)
    groups = -(-shape.segments // shape.warps)
    found = {Launch(groups * config.splits, config.rows, config.splits): config for config in configs}
    return dict(sorted(found.items()))


def fetch_configs(launches: Mapping[str, Launch]) -> dict[LinearKind, FetchConfig]:
    """How a profile's launches, by kind, fetch; kinds without one are left to the kernels' own choice.

    ValueError for what is no way to fetch.
    """
    found = {kind: launches[kind] for kind in LINEAR_KINDS if kind in launches}
    return {kind: FetchConfig(launch.rows, launch.splits, ahead=True) for kind, launch in found.items()}


def _config(rows: float) -> FetchConfig:
    """So many rows of every segment in flight, at most MOST_ROWS of them in one warp."""
    splits = min(MOST_SPLITS, max(1, math.ceil(rows / MOST_ROWS - 0.25)))
    return FetchConfig(min(MOST_ROWS, max(1, round(rows / splits))), splits, ahead=True)


def rungs(shape: FetchShape, config: FetchConfig, most_us: float, link_gb_s: float) -> tuple[int, ...]:
    """k_chunk at the ends of rounds of loads, of the first few also the middles, as far as the link can bring
    in `most_us`; further up in steps of some percent.
    """
    last = min(CHUNK, int(most_us * link_gb_s * 1e3 / shape.fetched_bytes(1)))
    round_ = config.rows * config.splits * CHUNK / shape.n_in
    ends = [int(end * round_) for end in range(1, int(last / round_) + 1)]
    middles = [int((middle + 0.5) * round_) for middle in range(_ROUNDS_WITH_MIDDLES)]
    return tuple(sorted({1, *_growing(ends), *middles} & set(range(1, last + 1))))


def _growing(ks: list[int]) -> list[int]:
    """Of ascending numbers those that are some percent above the one before."""
    kept: list[int] = []
    for k in ks:
        if not kept or k >= kept[-1] * _GROWTH:
            kept.append(k)
    return kept
