"""The low-bit bases of a model being prepared: one walk through the source's blocks for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from runtime import lowbit
from runtime.calibration import SINK_TOKENS, InputStatistics
from runtime.errors import DecdecError
from runtime.lowbit import LowBitWeights, with_residual
from runtime.protocol.bases import BaseSpec
from runtime.quantise.makers import Maker, Setting, make_maker
from runtime.quantise.walk import BlockInputs, walk


@dataclass(frozen=True, slots=True)
class BaseMaker:
    """Makes the blocks that an earlier run has not written yet, one in memory at a time."""

    setting: Setting
    bases: Sequence[BaseSpec]
    folder: Path

    def run(self) -> None:
        """Progress "quantise" in blocks. Raises DecdecError that names a linear, Interrupted."""
        blocks = range(len(self.setting.model.spec.layers))
        missing = {index: wanted for index in blocks if (wanted := self._missing(index))}
        if not missing:
            return
        makers = {base.name: make_maker(base, self.setting) for base in self.bases}
        texts = self.setting.texts()
        for seen in walk(self.setting.model, texts, self.setting.ctx, min(missing)):
            for base in missing.get(seen.index, []):
                self._write(base, makers[base.name], seen, [len(text) for text in texts])

    def _missing(self, index: int) -> list[BaseSpec]:
        return [base for base in self.bases if not lowbit.has_block(self.folder, base.name, index)]

    def _write(self, base: BaseSpec, maker: Maker, seen: BlockInputs, lengths: list[int]) -> None:
        try:
            made = maker.block(seen)
            linears = {
                kind: _with_profile(seen.weights[kind], *made[kind], seen.inputs[kind].inputs, lengths)
                for kind in seen.weights
            }
        except ValueError as error:
            raise DecdecError(f"Block {seen.index} cannot become {base.name}", str(error)) from error
        self.setting.ctx.check()
        lowbit.write_block(self.folder, base.name, seen.index, linears)


def _with_profile(
    weight: torch.Tensor,
    base: lowbit.BaseWeights,
    columns: torch.Tensor | None,
    inputs: torch.Tensor,
    lengths: list[int],
) -> LowBitWeights:
    """The residual, and the bucket profile of the divided inputs."""
    statistics = InputStatistics(weight.shape[1])
    scaled = inputs if columns is None else inputs / columns
    whole = len(scaled) == sum(lengths)
    for text in scaled.split(lengths) if whole else [scaled]:
        statistics.add(text[SINK_TOKENS:])
    return with_residual(weight, base, columns, statistics.profile)
