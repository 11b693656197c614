"""What the tuner asks of a device: one interface for the CPU's decode step and for captured graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from runtime.layers.base import LinearKind
from runtime.protocol.events import KChunk


class Launch(msgspec.Struct, frozen=True, order=True):
    """How a linear's rows are fetched: by so many programs (the paper's n_tb), each warp with `rows` rows in
    flight and one of `splits` parts of the list. All 0 where corrections have no programs: on a CPU.
    """

    programs: int = 0
    rows: int = 0
    splits: int = 0


NO_PROGRAMS = Launch()
# One choice holds for a whole profile.
Launches = Mapping[LinearKind, Launch]


class Measurer(Protocol):
    """Times of a decoder block on one device, in microseconds.

    joint_trials: how many joint measurements a detent is worth. rest_us: what else belongs to the time that
    slowdowns are percents of, per block (`BaseTimes`).
    """

    joint_trials: int

    @property
    def rest_us(self) -> float:
        """0 where slowdowns are those of the linears alone."""
        ...

    def base_us(self, kind: LinearKind) -> float:
        """The linear without any correction."""
        ...

    def launches(self, kind: LinearKind) -> Sequence[Launch]:
        """What is worth trying, ascending; (NO_PROGRAMS,) where there is no choice."""
        ...

    def rungs(self, kind: LinearKind, launch: Launch) -> Sequence[int]:
        """Values of k_chunk worth measuring, ascending, without 0."""
        ...

    def corrected_us(self, kind: LinearKind, launch: Launch, k_chunk: int) -> float:
        """The linear when it alone corrects, k_chunk channels per 1024, with everything that this takes."""
        ...

    def table_pct(self, launches: Launches, table: KChunk) -> float:
        """Slowdown at a table, all its kinds at work together."""
        ...
