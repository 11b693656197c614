"""How many bytes preparing a model will write, before the first of them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from pathlib import Path

from runtime.checkpoint import Checkpoint
from runtime.layers.base import LINEAR_KINDS
from runtime.model.spec import ModelSpec
from runtime.model.weights import linear_shape
from runtime.protocol.bases import BaseSpec

# A 4-bit residual, tables of groups of 128, and factors, scales and profiles of rows and columns, as bits
# per weight of a linear beside the base's own.
BESIDE_BITS = 4.0 + 0.25 + 0.25
PLAIN_BYTES = 4
TOKENIZER_BYTES = 16 << 20


def staging_bytes(checkpoint: Checkpoint, spec: ModelSpec, bases: Sequence[BaseSpec]) -> int:
    """An upper bound: raw bytes are INT8-X's fallback for every matrix, plus the low-bit bases."""
    shapes_of_all = [checkpoint.shape(name) for name in checkpoint.names()]
    coded = sum(prod(shape) * (1 if len(shape) == 2 else PLAIN_BYTES) for shape in shapes_of_all)
    shapes = [linear_shape(spec, kind) for kind in LINEAR_KINDS]
    linears = len(spec.layers) * sum(n_out * n_in for n_out, n_in in shapes)
    low_bit = sum(int(linears * (base.bits + BESIDE_BITS) / 8) for base in bases)
    return coded + low_bit + TOKENIZER_BYTES


def head_bytes(spec: ModelSpec) -> int:
    """Bytes on the device beside the decoder linears: the head as INT8 and the norms."""
    norms = (4 * len(spec.layers) + 1) * spec.hidden
    return spec.vocab_size * spec.hidden + PLAIN_BYTES * norms


def bits_per_weight(folder: Path, checkpoint: Checkpoint) -> float:
    """Bits of a model's INT8-X files per weight, tables, norms and headers counted."""
    size = sum(path.stat().st_size for path in folder.glob("*.safetensors"))
    return 8 * size / sum(prod(checkpoint.shape(name)) for name in checkpoint.names())


def tree_bytes(folder: Path) -> int:
    """Size of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
