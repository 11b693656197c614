"""Decoders made from an INT8-X model: lossless INT8 layers, embedding and head."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from runtime.checkpoint.base import Checkpoint
from runtime.int8x import Int8xReader
from runtime.int8x.config import tensor_error
from runtime.layers.base import LINEAR_KINDS, Linear, LinearKind
from runtime.layers.int8 import Int8
from runtime.model import weights
from runtime.model.build import bare_block
from runtime.model.decoder import Decoder
from runtime.model.spec import ModelSpec


@dataclass(frozen=True, slots=True)
class Tables:
    """Embedding table and head as INT8; one object when they are tied."""

    embedding: Int8
    head: Int8

    def bytes_in_memory(self) -> int:
        """Bytes of both, a tied table counted once."""
        tables = {id(t): t for t in (self.embedding, self.head)}
        return sum(t.bytes_in_memory() for t in tables.values())


def int8_tables(reader: Int8xReader, spec: ModelSpec) -> Tables:
    """Embedding and head of an INT8-X model."""
    embedding = Int8.of(reader.quantised(weights.EMBEDDING))
    return Tables(embedding, embedding if spec.tied else Int8.of(reader.quantised(weights.HEAD)))


def int8_block(reader: Int8xReader, spec: ModelSpec, index: int) -> dict[LinearKind, Int8]:
    """The four fused INT8 linears of a block; per-tensor scales are spread over their rows."""
    return {kind: _fused(reader, weights.part_names(spec, index, kind)) for kind in LINEAR_KINDS}


def assemble(
    checkpoint: Checkpoint, spec: ModelSpec, layers: list[dict[LinearKind, Linear]], tables: Tables
) -> Decoder:
    """A decoder over the given linears, with norms and biases from the checkpoint."""
    blocks = [bare_block(checkpoint, spec, index, block) for index, block in enumerate(layers)]
    norm = weights.norm_weight(checkpoint, spec, weights.FINAL_NORM, spec.hidden)
    return Decoder(spec, tables.embedding.rows, blocks, norm, tables.head)


def build_int8(reader: Int8xReader) -> Decoder:
    """The lossless INT8 decoder of an INT8-X model."""
    spec = ModelSpec.from_config(reader.config)
    layers = [dict[LinearKind, Linear](int8_block(reader, spec, i)) for i in range(len(spec.layers))]
    return assemble(reader, spec, layers, int8_tables(reader, spec))


def _fused(reader: Int8xReader, names: tuple[str, ...]) -> Int8:
    parts = [reader.quantised(name) for name in names]
    columns = parts[0].scales.columns
    for name, part in zip(names, parts, strict=True):
        if not _same(part.scales.columns, columns):
            raise tensor_error(
                name, f"its column factors are not those of {names[0]}, which reads the same input"
            )
    scales = torch.cat([part.row_scale() for part in parts])
    return Int8(torch.cat([part.q for part in parts]), scales, parts[0].scales.column_scale())


def _same(a: torch.Tensor | None, b: torch.Tensor | None) -> bool:
    return a is b if a is None or b is None else torch.equal(a, b)
