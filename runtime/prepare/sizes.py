"""How many bytes preparing a model will write, before the first of them."""

from __future__ import annotations

from math import prod
from pathlib import Path

from runtime.checkpoint import Checkpoint
from runtime.layers.base import LINEAR_KINDS
from runtime.model.spec import ModelSpec
from runtime.model.weights import linear_shape
from runtime.protocol.commands import Prepare

# Packed codes, tables of a group of 128, and a 4-bit residual, in bits per weight of a linear.
BASE_BITS = {3: 3.0 + 0.25 + 4.0, 4: 4.0 + 0.25 + 4.0}
PLAIN_BYTES = 4
TOKENIZER_BYTES = 16 << 20


def staging_bytes(checkpoint: Checkpoint, spec: ModelSpec, command: Prepare) -> int:
    """An upper bound: raw bytes are INT8-X's fallback for every matrix, plus the low-bit bases asked for."""
    shapes_of_all = [checkpoint.shape(name) for name in checkpoint.names()]
    coded = sum(prod(shape) * (1 if len(shape) == 2 else PLAIN_BYTES) for shape in shapes_of_all)
    shapes = [linear_shape(spec, kind) for kind in LINEAR_KINDS]
    linears = len(spec.layers) * sum(n_out * n_in for n_out, n_in in shapes)
    bases = sum(int(linears * BASE_BITS[bits] / 8) for bits in command.bits)
    return coded + bases + TOKENIZER_BYTES


def tree_bytes(folder: Path) -> int:
    """Size of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
