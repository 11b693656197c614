"""From the name of a base to what makes its blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from runtime.checkpoint.packed import PackedCheckpoint
from runtime.errors import DecdecError
from runtime.layers.base import LinearKind
from runtime.lowbit import BaseWeights
from runtime.model.source import SourceModel
from runtime.progress import JobContext
from runtime.protocol.bases import BaseSpec
from runtime.quantise.allocation import MAKES, allocate, predict
from runtime.quantise.awq import Awq
from runtime.quantise.int8x_base import int8x_base
from runtime.quantise.method import Place, Quantiser
from runtime.quantise.packed import read_packed
from runtime.quantise.rtn import Rtn
from runtime.quantise.squeezellm import SqueezeLLM
from runtime.quantise.walk import BlockInputs
from runtime.rate import Kept, sensitivities

Base = tuple[BaseWeights, torch.Tensor | None]


class Maker(Protocol):
    """Makes the four bases of one decoder block after another."""

    def block(self, seen: BlockInputs) -> dict[LinearKind, Base]:
        """Base in the domain of its column factors, and the factors float32 [n_in] or None, by kind.

        ValueError for weights that are not finite.
        """
        ...


@dataclass(frozen=True, slots=True)
class Setting:
    """What makers need of a model. `packed`: the checkpoint that the base "packed4" is read from."""

    model: SourceModel
    texts: Callable[[], list[torch.Tensor]]
    ctx: JobContext
    kept: Kept | None = None
    packed: PackedCheckpoint | None = None


@dataclass(frozen=True, slots=True)
class Linears:
    """Every linear by itself, with the quantiser that has the block's bits."""

    quantisers: Sequence[Quantiser]

    def block(self, seen: BlockInputs) -> dict[LinearKind, Base]:
        """One base per kind."""
        quantiser = self.quantisers[seen.index]
        return {
            kind: quantiser.quantise(Place(seen.index, kind), weight, seen.inputs[kind])
            for kind, weight in seen.weights.items()
        }


@dataclass(frozen=True, slots=True)
class Packed:
    """What another program quantised, fitted to the reference."""

    packed: PackedCheckpoint
    model: SourceModel

    def block(self, seen: BlockInputs) -> dict[LinearKind, Base]:
        """One base per kind."""
        return dict(read_packed(self.packed, self.model.checkpoint, seen.index))


def make_maker(base: BaseSpec, setting: Setting) -> Maker:
    """The maker of a base; what it has to measure first, it measures here. Raises DecdecError."""
    if base.method == "int8x":
        coded = int8x_base(setting.model.checkpoint, base.bits, setting.texts, setting.ctx, setting.kept)
        return Linears([coded] * len(setting.model.spec.layers))
    if base.method == "packed":
        if setting.packed is None:
            raise DecdecError(
                f"The base {base.name} cannot be made",
                "it is read from a checkpoint",
                "name it by --base-from",
            )
        return Packed(setting.packed, setting.model)
    made = {bits: QUANTISERS[base.method](bits) for bits in (3, 4)}
    return Linears([made[bits] for bits in block_bits(base, setting)])


def block_bits(base: BaseSpec, setting: Setting) -> tuple[int, ...]:
    """Bits of every block: those of the base, or where it is a mix, by predicted KL."""
    if not base.mixed:
        return (int(base.bits),) * len(setting.model.spec.layers)
    known = sensitivities(setting.model, setting.texts, setting.ctx, setting.kept)
    return allocate(predict(setting.model, known, MAKES[base.method], setting.ctx), base.bits)


QUANTISERS: dict[str, Callable[[int], Quantiser]] = {"rtn": Rtn, "awq": Awq, "squeezellm": SqueezeLLM}
