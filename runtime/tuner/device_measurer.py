"""What the tuner measures on a GPU: replays of one graph of a block's linears, k_chunk changed in between."""

from __future__ import annotations

from collections.abc import Mapping

from kernels.gpu.dec.fetch import FetchConfig
from runtime.layers.base import LINEAR_KINDS, LinearKind
from runtime.layers.device_products import product_warps
from runtime.protocol.events import KChunk
from runtime.tuner.costs import MAX_PCT
from runtime.tuner.device_block import DeviceBlock
from runtime.tuner.fetching import FetchShape, launches, rungs
from runtime.tuner.measurer import Launch, Launches
from runtime.tuner.replays import Replay
from runtime.tuner.verify import MOST_TRIALS

# Pairs of replays: as many as fit a time, for those of long graphs are quieter.
_SINGLE_US, _JOINT_US = 6_000.0, 15_000.0
_FEWEST_REPLAYS, _MOST_REPLAYS = 11, 41
# The fetch may take as long as the block and this much of it: what lies beyond no budget allows.
_REACH = 1.1 + MAX_PCT / 100
_NO_TABLE: dict[LinearKind, int] = dict.fromkeys(LINEAR_KINDS, 0)


class DeviceMeasurer:
    """Implements `runtime.tuner.measurer.Measurer`.

    Every linear is measured in its place in the block, so that what others leave in the caches counts.
    Being ready to correct (selection, fetch programs without work) is shared out to the four kinds evenly.
    """

    joint_trials = MOST_TRIALS

    def __init__(self, block: DeviceBlock, link_gb_s: float) -> None:
        self.block, self.link_gb_s = block, link_gb_s
        self.shapes = {
            kind: FetchShape(*block.shapes[kind], product_warps(weights))
            for kind, weights in block.weights[0].items()
        }
        self._fetching = {kind: launches(shape, link_gb_s) for kind, shape in self.shapes.items()}
        self._base = Replay(block.calls({}))
        self._graphs: dict[tuple[Launch, ...], Replay] = {}
        self._ready: dict[tuple[Launch, ...], float] = {}
        self._graph_us = self._base.microseconds()
        self._base_us = self._shared_out()

    @property
    def total_us(self) -> float:
        """Microseconds of a block without correction."""
        return sum(self._base_us.values())

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
        """The linear when it alone corrects in a block that is ready to."""
        key = self._key(kind, launch)
        if key not in self._ready:
            self._ready[key] = self._added(key, _NO_TABLE, _JOINT_US)
        ready = self._ready[key]
        added = ready if k_chunk == 0 else self._added(key, {**_NO_TABLE, kind: k_chunk}, _SINGLE_US)
        return self.base_us(kind) + added - ready + ready / len(LINEAR_KINDS)

    def table_pct(self, launches: Launches, table: KChunk) -> float:
        """Slowdown of the block at a table, its base replayed in between."""
        if table.total == 0:
            return 0.0
        self.block.set_table({kind: getattr(table, kind) for kind in LINEAR_KINDS})
        added, base = self.graph(launches).added_to(self._base, self._replays(_JOINT_US))
        return 100.0 * added / base

    def fetching(self, launches: Launches) -> dict[LinearKind, FetchConfig]:
        """The ways of fetching behind launches."""
        return {kind: self._fetching[kind][launches[kind]] for kind in LINEAR_KINDS}

    def graph(self, launches: Launches) -> Replay:
        """The captured block, launched so."""
        key = tuple(launches[kind] for kind in LINEAR_KINDS)
        if key not in self._graphs:
            self._graphs[key] = Replay(self.block.calls(self.fetching(launches)))
        return self._graphs[key]

    def _key(self, kind: LinearKind, launch: Launch) -> tuple[Launch, ...]:
        """Of a few graphs that have every launch one that has this: all kinds at its place in their lists."""
        place = self.launches(kind).index(launch)
        return tuple(tried[min(place, len(tried) - 1)] for tried in map(self.launches, LINEAR_KINDS))

    def _added(self, key: tuple[Launch, ...], table: Mapping[LinearKind, int], us: float) -> float:
        """Microseconds that a block takes longer than its base."""
        graph = self.graph(dict(zip(LINEAR_KINDS, key, strict=True)))
        self.block.set_table(table)
        return graph.added_to(self._base, self._replays(us))[0] / self.block.copies

    def _replays(self, us: float) -> int:
        """Pairs of replays that fit `us` microseconds."""
        return round(min(max(us / (2 * self._graph_us), _FEWEST_REPLAYS), _MOST_REPLAYS))

    def _shared_out(self) -> dict[LinearKind, float]:
        """The block's time by kind: what it takes less without that kind's linears, scaled to the whole."""
        block = self._base.microseconds(_MOST_REPLAYS) / self.block.copies
        rest = {kind: tuple(other for other in LINEAR_KINDS if other != kind) for kind in LINEAR_KINDS}
        less = {
            kind: self._base.added_to(Replay(self.block.calls({}, rest[kind])))[0] for kind in LINEAR_KINDS
        }
        return {kind: block * us / sum(less.values()) for kind, us in less.items()}
