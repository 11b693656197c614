"""The bases that can be evaluated: each method's way from a block's weights to what a kernel would hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from kernels.dec import TableCodes
from kernels.int8x import Quantised
from runtime.calibration.continuations import model_texts
from runtime.calibration.prompts import checkpoint_texts
from runtime.errors import DecdecError
from runtime.evaluate.inputs import BlockSource
from runtime.evaluate.linear import int8_rounded
from runtime.evaluate.request import BaseWish, Request
from runtime.int8x.choice import CodecChoice
from runtime.int8x.codecs import code_matrix
from runtime.int8x.origin import fingerprint
from runtime.layers.base import LINEAR_KINDS, LinearKind
from runtime.lowbit.weights import BaseWeights, scaled_base
from runtime.model.source import SourceModel
from runtime.progress import JobContext
from runtime.protocol.bases import BaseSpec
from runtime.protocol.quality import BALANCED
from runtime.quantise import makers
from runtime.rate import Kept, Rounder, make_rounder

TABLE_BITS, COLUMN_BITS = 16, 32


@dataclass(frozen=True, slots=True)
class Made:
    """A base: weight float32 [n_out, n_in] in the domain of its column factors, and the bits it takes."""

    weight: torch.Tensor
    columns: torch.Tensor | None
    stored_bits: float

    @classmethod
    def of(cls, base: BaseWeights, columns: torch.Tensor | None = None) -> Made:
        """From codes: tables are kept in bfloat16, column factors in float32, integers coded."""
        if isinstance(base, Quantised):
            return cls(scaled_base(base), columns, _coded_bits(base))
        tables = (base.table,) if isinstance(base, TableCodes) else (base.scale, base.zero)
        factors = 0 if columns is None else columns.numel()
        stored = base.bits * base.codes.numel() + TABLE_BITS * sum(map(torch.numel, tables))
        return cls(scaled_base(base), columns, stored + COLUMN_BITS * factors)


MadeBlock = dict[LinearKind, Made]
Maker = Callable[[BlockSource], MadeBlock]


@dataclass(frozen=True, slots=True)
class Setting:
    """What makers need beside the weights; sensitivities are kept in `folder`, so they are measured once."""

    model: SourceModel
    path: Path
    request: Request
    folder: Path
    ctx: JobContext

    def texts(self) -> list[torch.Tensor]:
        """Calibration texts int64 [T]."""
        if not self.request.continuations:
            return checkpoint_texts(self.model.checkpoint)
        return model_texts(self.model, self.folder, fingerprint(self.path), self.ctx)

    def kept(self) -> Kept:
        """Where sensitivities are."""
        read = "+continuations" if self.request.continuations else ""
        return Kept(self.folder, fingerprint(self.path) + read)


def maker(base: BaseWish, setting: Setting) -> Maker:
    """The maker of a base; what it has to measure first, it measures here."""
    if base.method == "int8":
        return _int8(setting.request.scale)
    return _int8x(base, setting) if base.method == "int8x" else _served(base, setting)


def needs_inputs(base: BaseWish) -> bool:
    """Whether the method looks at calibration inputs."""
    return base.method in ("awq", "squeezellm")


def _served(base: BaseWish, setting: Setting) -> Maker:
    """By the makers that prepare a model."""
    spec = BaseSpec(base.method, base.bits or 4)  # type: ignore[arg-type]
    place = makers.Setting(setting.model, setting.texts, setting.ctx, setting.kept())
    made = makers.make_maker(spec, place)

    def make(source: BlockSource) -> MadeBlock:
        try:
            return {kind: Made.of(*one) for kind, one in made.block(source.seen(needs_inputs(base))).items()}
        except ValueError as error:
            raise DecdecError(f"Block {source.index} cannot become {base.name}", str(error)) from error

    return make


def _int8(scale: str) -> Maker:
    def make(source: BlockSource) -> MadeBlock:
        return {kind: _rounded_int8(source.parts[kind], scale) for kind in LINEAR_KINDS}

    return make


def _rounded_int8(parts: tuple[torch.Tensor, ...], scale: str) -> Made:
    weight = torch.cat([int8_rounded(part, scale) for part in parts])
    scales = len(weight) if scale == "row" else len(parts)
    return Made(weight, None, 8 * weight.numel() + 32 * scales)


def _int8x(base: BaseWish, setting: Setting) -> Maker:
    """As on disk: matrix by matrix, also where a product takes several at once."""
    checkpoint, quality = setting.model.checkpoint, base.quality or BALANCED
    rounder = make_rounder(checkpoint, quality, setting.texts, setting.ctx, setting.kept())

    def make(source: BlockSource) -> MadeBlock:
        return {kind: _stacked(list(_rounded(rounder, source, kind))) for kind in LINEAR_KINDS}

    return make


def _rounded(rounder: Rounder, source: BlockSource, kind: LinearKind) -> Iterator[Quantised]:
    first = 0
    for part in source.parts[kind]:
        yield rounder.round(source.index, kind, part, first)
        first += len(part)


def _stacked(matrices: list[Quantised]) -> Made:
    weight, columns = torch.cat(list(map(scaled_base, matrices))), matrices[0].scales.column_scale()
    return Made(weight, columns, sum(map(_coded_bits, matrices)))


def _coded_bits(matrix: Quantised) -> float:
    return code_matrix(matrix, CodecChoice())[0].stored_bits
