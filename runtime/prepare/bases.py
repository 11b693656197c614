"""The low-bit bases of a model being prepared: one walk through the source's blocks for all of them."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from runtime import lowbit
from runtime.calibration import SINK_TOKENS, InputStatistics
from runtime.errors import DecdecError
from runtime.lowbit import LowBitWeights, with_residual
from runtime.protocol.bases import PACKED, BaseSpec
from runtime.quantise.makers import Maker, Setting, make_maker
from runtime.quantise.walk import BlockInputs, walk
from runtime.store.atomic import write_bytes

# Which AWQ or GPTQ checkpoint the base "packed4" was read from: its fingerprint.
PACKED_ORIGIN = Path("calibration") / "packed-origin"


def missing_blocks(folder: Path, bases: Sequence[BaseSpec], blocks: int) -> dict[int, list[BaseSpec]]:
    """Of every block the bases that are not written yet; blocks that lack none are left out."""
    lacking = {
        index: [base for base in bases if not lowbit.has_block(folder, base.name, index)]
        for index in range(blocks)
    }
    return {index: wanted for index, wanted in lacking.items() if wanted}


def forget_other_packed(folder: Path, origin: str) -> None:
    """Drop a base "packed4" that was read from another checkpoint than the one of this fingerprint."""
    known = folder / PACKED_ORIGIN
    if known.is_file() and known.read_text() == origin:
        return
    shutil.rmtree(folder / f"base-{PACKED.name}", ignore_errors=True)
    write_bytes(known, origin.encode())


@dataclass(frozen=True, slots=True)
class BaseMaker:
    """Makes the blocks that are missing (at least one is), one in memory at a time."""

    setting: Setting
    missing: Mapping[int, Sequence[BaseSpec]]
    folder: Path

    def run(self) -> None:
        """Progress "quantise" in blocks. Raises DecdecError that names a linear, Interrupted."""
        bases = {base.name: base for wanted in self.missing.values() for base in wanted}
        makers = {name: make_maker(base, self.setting) for name, base in bases.items()}
        texts = self.setting.texts()
        for seen in walk(self.setting.model, texts, self.setting.ctx, min(self.missing)):
            for base in self.missing.get(seen.index, []):
                self._write(base, makers[base.name], seen, [len(text) for text in texts])

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
