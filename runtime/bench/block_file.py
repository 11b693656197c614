"""Linears of one block of a checkpoint as a small file, for a machine that the whole model does not reach.

python -m runtime.bench.block_file MODEL OUT.safetensors
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from runtime.layers.base import LINEAR_KINDS

Named = tuple[str, torch.Tensor]
SUFFIX = ".safetensors"


def block_linears(path: Path) -> Iterator[Named]:
    """Name and float32 matrix of the fused linears in a checkpoint's middle block, or in a block file."""
    if path.suffix == SUFFIX:
        yield from load_file(path).items()
        return
    from runtime.checkpoint import open_checkpoint
    from runtime.model.spec import ModelSpec
    from runtime.model.weights import fused_weight

    checkpoint = open_checkpoint(path)
    spec = ModelSpec.from_config(checkpoint.config)
    block = len(spec.layers) // 2
    for kind in LINEAR_KINDS:
        yield f"{path.stem}, block {block}, {kind}", fused_weight(checkpoint, spec, block, kind)


def write_block(path: Path, out: Path) -> None:
    """Write the linears of the middle block of a checkpoint."""
    save_file({name: weight.contiguous() for name, weight in block_linears(path)}, out)


if __name__ == "__main__":
    write_block(Path(sys.argv[1]), Path(sys.argv[2]))
