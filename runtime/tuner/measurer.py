"""What the tuner asks of a device: one interface for the CPU's decode step and for captured graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from runtime.layers.base import LinearKind
from runtime.protocol.events import KChunk

# Fetch programs (the paper's n_tb) of every kind; one choice holds for a whole profile.
Launches = Mapping[LinearKind, int]
# Where fetches have no programs of their own: the CPU.
NO_PROGRAMS = 0


class Measurer(Protocol):
    """Times of a decoder block's linears on one device, in microseconds per block.

    joint_trials: how many joint measurements a detent is worth.
    """

    joint_trials: int

    def base_us(self, kind: LinearKind) -> float:
        """The linear without any correction."""
        ...

    def launches(self, kind: LinearKind) -> Sequence[int]:
        """Numbers of fetch programs worth trying, ascending; (NO_PROGRAMS,) where there is no choice."""
        ...

    def rungs(self, kind: LinearKind, n_tb: int) -> Sequence[int]:
        """Values of k_chunk worth measuring with so many programs, ascending, without 0."""
        ...

    def corrected_us(self, kind: LinearKind, n_tb: int, k_chunk: int) -> float:
        """The linear when k_chunk channels per 1024 are corrected; k_chunk 0: ready to, but none is."""
        ...

    def table_pct(self, launches: Launches, table: KChunk) -> float:
        """Slowdown of all linears together at a table, in percent of their time without correction."""
        ...
