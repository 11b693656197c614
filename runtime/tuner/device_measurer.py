"""What the tuner measures on a GPU: replays of captured blocks, k_chunk changed in between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from torch import Tensor

from runtime.engine.gpu.linears import BoundBlock, Fetching
from runtime.layers.base import LINEAR_KINDS, LinearKind
from runtime.protocol.events import KChunk
from runtime.tuner.costs import MAX_PCT
from runtime.tuner.device_block import Call
from runtime.tuner.fetching import FetchShape, launches, rungs
from runtime.tuner.measurer import Launch, Launches
from runtime.tuner.replays import Replay
from runtime.tuner.verify import MOST_TRIALS

# Pairs of replays: as many as fit a time, for those of long graphs are quieter.
_SINGLE_US, _JOINT_US = 6_000.0, 15_000.0
_FEWEST_REPLAYS, _MOST_REPLAYS = 11, 41
# The fetch may take as long as the block and this much of it: what lies beyond no budget allows.
_REACH = 1.1 + MAX_PCT / 100
_LEAST_US = 0.01


class Blocks(Protocol):
    """What can be measured: `DeviceBlock`, or something in its place."""

    copies: int
    shapes: dict[LinearKind, FetchShape]

    @property
    def results(self) -> tuple[Tensor, ...]:
        """Where what is computed ends, on the device."""
        ...

    def linears(self, fetching: Fetching) -> Sequence[BoundBlock]:
        """The linears of every copy."""
        ...

    def start(self, table: Mapping[LinearKind, int]) -> None:
        """k_chunk by kind, 0 where it names none, and results as before anything was run."""
        ...

    def calls(self, fetching: Fetching, again: LinearKind | None = None) -> list[Call]:
        """All copies, corrected where `fetching` says; `again`: with one kind's linear run twice."""
        ...


class DeviceMeasurer:
    """Implements `runtime.tuner.measurer.Measurer`.

    A kind that is not corrected has neither selection nor fetch in a graph, as in the engine's, so there is a
    graph for every set of kinds and ways to fetch. Linears are measured in their place in the block, where
    what others leave in the caches counts.
    """

    joint_trials = MOST_TRIALS

    def __init__(self, block: Blocks, link_gb_s: float, outside_us: float = 0.0) -> None:
        """`outside_us`: per block, of what a token takes before and after all of them."""
        self.block, self.link_gb_s, self.shapes = block, link_gb_s, block.shapes
        self._fetching = {kind: launches(shape, link_gb_s) for kind, shape in self.shapes.items()}
        self._graphs: dict[tuple[tuple[LinearKind, Launch], ...], Replay] = {}
        self._outside_us = outside_us
        block.start({})
        self._base = Replay(block.calls({}))
        self._block_us = self._base.microseconds(_MOST_REPLAYS) / block.copies
        self._base_us = self._by_kind()

    @property
    def total_us(self) -> float:
        """Microseconds per block of a token without correction."""
        return self._block_us + self._outside_us

    @property
    def rest_us(self) -> float:
        """All but the linears."""
        return max(self.total_us - sum(self._base_us.values()), 0.0)

    def base_us(self, kind: LinearKind) -> float:
        """Input and product of the linear, in microseconds."""
        return self._base_us[kind]

    def launches(self, kind: LinearKind) -> tuple[Launch, ...]:
        """Ways of fetching worth trying."""
        return tuple(self._fetching[kind])

    def rungs(self, kind: LinearKind, launch: Launch) -> tuple[int, ...]:
        """Ends and middles of rounds of loads."""
        most = _REACH * self.total_us
        return rungs(self.shapes[kind], self._fetching[kind][launch], most, self.link_gb_s)

    def corrected_us(self, kind: LinearKind, launch: Launch, k_chunk: int) -> float:
        """The linear when it alone corrects, and the block what that takes in other kernels."""
        return self.base_us(kind) + self._added({kind: launch}, {kind: k_chunk}, _SINGLE_US)[0]

    def table_pct(self, launches: Launches, table: KChunk) -> float:
        """Slowdown of a token at a table, the base replayed in between."""
        ks: dict[LinearKind, int] = {kind: getattr(table, kind) for kind in LINEAR_KINDS}
        added, base = self._added(launches, ks, _JOINT_US)
        return 100.0 * added / (base + self._outside_us)

    def fetching(self, launches: Launches) -> Fetching:
        """The ways of fetching behind launches."""
        return {kind: self._fetching[kind][launch] for kind, launch in launches.items()}

    def graph(self, launches: Launches) -> Replay:
        """The captured blocks in which just these kinds are corrected, and so."""
        key = tuple((kind, launches[kind]) for kind in LINEAR_KINDS if kind in launches)
        if key not in self._graphs:
            self._graphs[key] = Replay(self.block.calls(self.fetching(launches)))
        return self._graphs[key]

    def _added(self, launches: Launches, table: Mapping[LinearKind, int], us: float) -> tuple[float, float]:
        """Microseconds that a block takes longer than its base, and those of the base."""
        working: Launches = {kind: launches[kind] for kind, k in table.items() if k}
        if not working:
            return 0.0, self._block_us
        self.block.start(table)
        added, base = self.graph(working).added_to(self._base, self._replays(us))
        return added / self.block.copies, base / self.block.copies

    def _replays(self, us: float) -> int:
        """Pairs of replays that fit `us` microseconds."""
        pair = 2 * self._block_us * self.block.copies
        return round(min(max(us / pair, _FEWEST_REPLAYS), _MOST_REPLAYS))

    def _by_kind(self) -> dict[LinearKind, float]:
        """What a block takes longer when a kind's linear is run once more; all of them at most the block."""
        more = {kind: Replay(self.block.calls({}, kind)).added_to(self._base)[0] for kind in LINEAR_KINDS}
        linears = {kind: max(us / self.block.copies, _LEAST_US) for kind, us in more.items()}
        over = max(1.0, sum(linears.values()) / self._block_us)
        return {kind: us / over for kind, us in linears.items()}
