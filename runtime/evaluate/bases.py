"""The bases that can be evaluated: each method's way from a block's weights to what a kernel would hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from kernels.dec import GroupCodes, TableCodes, quantise_rtn
from kernels.int8x import Quantised
from runtime.calibration.prompts import checkpoint_texts
from runtime.errors import DecdecError
from runtime.evaluate.inputs import BlockInputs
from runtime.evaluate.linear import int8_rounded
from runtime.evaluate.request import BaseWish, Method, Request
from runtime.int8x.choice import CodecChoice
from runtime.int8x.codecs import code_matrix
from runtime.int8x.origin import fingerprint
from runtime.layers.base import LinearKind
from runtime.lowbit.weights import scaled_base
from runtime.model.source import SourceModel
from runtime.progress import JobContext
from runtime.protocol.quality import BALANCED
from runtime.rate import Kept, Rounder, make_rounder

TABLE_BITS, COLUMN_BITS = 16, 32


@dataclass(frozen=True, slots=True)
class Source:
    """One fused linear to make a base of: place, parts float32 [rows, n_in], and calibration inputs."""

    block: int
    kind: LinearKind
    parts: tuple[torch.Tensor, ...]
    inputs: BlockInputs | None = None

    def weight(self) -> torch.Tensor:
        """The fused matrix, float32 [n_out, n_in]."""
        return torch.cat(self.parts)


@dataclass(frozen=True, slots=True)
class Made:
    """A base: weight float32 [n_out, n_in] in the domain of its column factors, and the bits it takes."""

    weight: torch.Tensor
    columns: torch.Tensor | None
    stored_bits: float

    @classmethod
    def of(cls, base: GroupCodes | TableCodes, columns: torch.Tensor | None = None) -> Made:
        """From codes; tables are kept in bfloat16, column factors in float32."""
        tables = (
            base.table.numel() if isinstance(base, TableCodes) else base.scale.numel() + base.zero.numel()
        )
        factors = 0 if columns is None else columns.numel()
        bits = base.bits * base.codes.numel() + TABLE_BITS * tables + COLUMN_BITS * factors
        return cls(scaled_base(base), columns, bits)


Maker = Callable[[Source], Made]


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
        return checkpoint_texts(self.model.checkpoint)

    def kept(self) -> Kept:
        """Where sensitivities are."""
        return Kept(self.folder, fingerprint(self.path))


def maker(base: BaseWish, setting: Setting) -> Maker:
    """The maker of a base; what it has to measure first, it measures here."""
    if base.method not in _MAKERS:
        raise DecdecError(f"The base {base.name} cannot be evaluated", "no quantiser makes it")
    return _MAKERS[base.method](base, setting)


def needs_inputs(base: BaseWish) -> bool:
    """Whether the method looks at calibration inputs."""
    return base.method in ("awq", "squeezellm")


def _int8(base: BaseWish, setting: Setting) -> Maker:
    scale = setting.request.scale

    def make(source: Source) -> Made:
        weight = torch.cat([int8_rounded(part, scale) for part in source.parts])
        scales = len(weight) if scale == "row" else len(source.parts)
        return Made(weight, None, 8 * weight.numel() + 32 * scales)

    return make


def _int8x(base: BaseWish, setting: Setting) -> Maker:
    checkpoint, quality = setting.model.checkpoint, base.quality or BALANCED
    rounder = make_rounder(checkpoint, quality, setting.texts, setting.ctx, setting.kept())

    def make(source: Source) -> Made:
        matrices = list(_rounded(rounder, source))
        bits = sum(code_matrix(matrix, CodecChoice())[0].stored_bits for matrix in matrices)
        return Made(torch.cat([scaled_base(m) for m in matrices]), matrices[0].scales.column_scale(), bits)

    return make


def _rounded(rounder: Rounder, source: Source) -> Iterator[Quantised]:
    first = 0
    for part in source.parts:
        yield rounder.round(source.block, source.kind, part, first)
        first += len(part)


def _rtn(base: BaseWish, setting: Setting) -> Maker:
    bits = int(base.bits or 4)
    return lambda source: Made.of(quantise_rtn(source.weight(), bits))


_MAKERS: dict[Method, Callable[[BaseWish, Setting], Maker]] = {"int8": _int8, "int8x": _int8x, "rtn": _rtn}
