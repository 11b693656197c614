"""Which ways of fetching are worth trying for a linear, and where their staircases have steps: arithmetic."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kernels.gpu.dec.fetch import SEGMENT_WORDS, WORD_OUTPUTS, FetchConfig

CHUNK = 1024
# Bytes that a warp has in flight for each row it reads.
SEGMENT_BYTES = 4 * SEGMENT_WORDS
# One dependent read of host memory; what must be in flight is the link's bandwidth times this, several times
# over while the base's traffic is in the way (measured on an H200; other PCIe links are much alike).
LATENCY_US = 1.13
LEAST_IN_FLIGHT, MOST_IN_FLIGHT = 0.5, 9.0
MOST_SPLITS = 16
MOST_LAUNCHES = 4
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

    def programs(self, config: FetchConfig) -> int:
        """Fetch programs: n_tb."""
        return -(-self.segments // self.warps) * config.splits


def launches(shape: FetchShape, link_gb_s: float) -> dict[int, FetchConfig]:
    """Ways to fetch by their number of programs, ascending: those that keep about enough bytes in flight."""
    found = {shape.programs(config): config for config in _in_flight(shape, link_gb_s)}
    return dict(sorted(found.items())[:MOST_LAUNCHES])


def _in_flight(shape: FetchShape, link_gb_s: float) -> Iterator[FetchConfig]:
    needed = link_gb_s * 1e3 * LATENCY_US
    rows, ahead = (16, False) if shape.warps == 1 else (8, True)
    splits = [1 << i for i in range(MOST_SPLITS.bit_length())]
    flying = {s: shape.segments * s * rows * SEGMENT_BYTES / needed for s in splits}
    fitting = [s for s, times in flying.items() if LEAST_IN_FLIGHT <= times <= MOST_IN_FLIGHT]
    for s in fitting or [min(splits, key=lambda s: abs(flying[s] - MOST_IN_FLIGHT))]:
        yield FetchConfig(rows, s, ahead)


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
