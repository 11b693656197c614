"""The low-bit bases of a model being prepared: one walk through the source's blocks for all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from kernels.dec import quantise_rtn
from runtime import lowbit
from runtime.calibration.collect import record
from runtime.layers.base import LINEAR_KINDS
from runtime.layers.dense import Dense
from runtime.lowbit import with_residual
from runtime.model.cache import SinglePass
from runtime.model.source import SourceModel
from runtime.progress import JobContext
from runtime.protocol.bases import BaseSpec


class BaseMaker:
    """Makes the blocks of every base that an earlier run has not written yet, one in memory at a time."""

    def __init__(
        self,
        open_model: Callable[[], SourceModel],
        texts: Callable[[], Sequence[torch.Tensor]],
        bases: Sequence[BaseSpec],
        folder: Path,
    ) -> None:
        self._open, self._texts, self._bases, self._folder = open_model, texts, bases, folder

    def run(self, ctx: JobContext) -> None:
        """Progress "quantise" in blocks. Raises DecdecError that names a linear, Interrupted."""
        model = self._open()
        count = len(model.spec.layers)
        last = max((index for index in range(count) if self._missing(index)), default=-1)
        states = [model.embed(text) for text in self._texts()] if last >= 0 else []
        for index in range(last + 1):
            ctx.progress("quantise", index, count, "blocks")
            states = self._block(model, index, states)
        ctx.progress("quantise", count, count, "blocks")

    def _missing(self, index: int) -> list[BaseSpec]:
        return [base for base in self._bases if not lowbit.has_block(self._folder, base.name, index)]

    def _block(self, model: SourceModel, index: int, states: list[torch.Tensor]) -> list[torch.Tensor]:
        block = model.bare_block(index)
        fused = {kind: torch.cat(parts) for kind, parts in model.parts(index).items()}
        block.linears = {kind: Dense(fused[kind]) for kind in LINEAR_KINDS}
        with record(block.linears) as statistics:
            states = [model.decoder.run_block(h, 0, block, SinglePass()) for h in states]
        for base in self._missing(index):
            made = {
                kind: with_residual(
                    fused[kind], quantise_rtn(fused[kind], int(base.bits)), None, statistics[kind].profile
                )
                for kind in LINEAR_KINDS
            }
            lowbit.write_block(self._folder, base.name, index, made)
        return states
