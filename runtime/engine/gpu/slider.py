"""The slider of a GPU engine: which table is in force, and in which graph."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from runtime.engine.gpu.linears import BoundBlock
from runtime.engine.gpu.step import StepBuffers
from runtime.engine.slider import TunedPath
from runtime.generation.engine import SliderReading
from runtime.layers.base import LINEAR_KINDS, LinearKind
from runtime.protocol.events import KChunk


@dataclass(frozen=True, slots=True)
class Position:
    """Where a slider stands."""

    pct: float = 0.0
    lossless: bool = False


class DeviceSlider:
    """Takes a wish at any time, and puts it in force when the next step is launched."""

    def __init__(
        self, path: TunedPath, buffers: StepBuffers, blocks: list[BoundBlock], lossless: bool
    ) -> None:
        """`blocks` are the corrected linears; `lossless`: whether there is a stop beyond the right end."""
        self._path, self._buffers, self._has_lossless = path, buffers, lossless
        self._blocks = blocks
        self._wanted: Position | None = None
        self.at, self.table = Position(), KChunk()
        device = buffers.stream.device
        self._refused = torch.zeros(len(LINEAR_KINDS), dtype=torch.int32, pin_memory=device.type == "cuda")

    @property
    def corrected(self) -> frozenset[LinearKind]:
        """Kinds that correct at the table in force."""
        return kinds_of(self.table) if not self.at.lossless else frozenset()

    def tables(self) -> list[KChunk]:
        """Every table that a position can bring."""
        return [KChunk(), *(point.k_chunk for point in self._path.points)]

    def want(self, pct: float, lossless: bool) -> None:
        """Ask for a position."""
        self._wanted = Position(pct, lossless and self._has_lossless)

    def take(self) -> bool:
        """Put the position asked for in force; whether anything changed that a step notices."""
        if self._wanted is None:
            return False
        before = self.at.lossless, self.table
        self.at, self._wanted = self._wanted, None
        self.put(self._path.at(self.at.pct))
        return (self.at.lossless, self.table) != before

    def put(self, table: KChunk) -> None:
        """Put a table in force: small writes into device memory, in the order of the stream."""
        if table == self.table:
            return
        self.table = table
        for kind in LINEAR_KINDS:
            self._buffers.kinds[kind].step.set_k_chunk(getattr(table, kind))

    def reading(self, measured: float | None) -> SliderReading:
        """The state in force."""
        nothing = not self.corrected
        return SliderReading(
            target_pct=self.at.pct,
            measured_pct=0.0 if nothing else _at_least_nothing(measured),
            k_chunk=KChunk() if self.at.lossless else self.table,
            channels_corrected=0 if self.at.lossless else self._channels(),
            lossless=self.at.lossless,
            left_out=self._left_out(),
        )

    def _channels(self) -> int:
        """Input channels corrected per token, over all blocks."""
        return sum(
            linear.buffers.selection.listed(getattr(self.table, kind))
            for block in self._blocks
            for kind, linear in block.items()
            if linear.fetch is not None
        )

    def _left_out(self) -> int:
        """As counted a few steps ago: to wait for the device here would stop it."""
        known = int(self._refused.sum())
        for place, kind in enumerate(LINEAR_KINDS):
            counts: Tensor = self._buffers.kinds[kind].step.selection.control[2:3]
            self._refused[place : place + 1].copy_(counts, non_blocking=True)
        return known


def _at_least_nothing(measured: float | None) -> float | None:
    """Noise may find steps with corrections faster."""
    return None if measured is None else max(measured, 0.0)


def kinds_of(table: KChunk) -> frozenset[LinearKind]:
    """Kinds with a k_chunk above 0."""
    return frozenset(kind for kind in LINEAR_KINDS if getattr(table, kind) > 0)
