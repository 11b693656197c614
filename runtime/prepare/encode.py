"""One pass over the source: INT8-X of every tensor, low-bit bases and residuals from the same weights."""

from __future__ import annotations

from math import prod
from pathlib import Path

import torch

from runtime import lowbit
from runtime.checkpoint import Checkpoint
from runtime.int8x import Int8xWriter
from runtime.int8x.encoding import TensorCoder
from runtime.layers.base import LINEAR_KINDS, LinearKind
from runtime.model import weights
from runtime.model.spec import ModelSpec
from runtime.progress import JobContext
from runtime.rate import Rounder


class Encoder:
    """Encodes a checkpoint into a staging folder, block by block; skips what an earlier run finished."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        writer: Int8xWriter,
        rounder: Rounder,
        folder: Path,
        bits: tuple[int, ...],
    ) -> None:
        self._checkpoint, self._writer, self._folder = checkpoint, writer, folder
        self._coder = TensorCoder(writer, checkpoint, rounder)
        self._bases = [f"rtn{b}" for b in bits]
        self._spec = ModelSpec.from_config(checkpoint.config)
        self._sizes = {name: prod(checkpoint.shape(name)) for name in checkpoint.names()}
        self._done = 0

    def run(self, ctx: JobContext) -> None:
        """Encode everything; progress "encode" in weights."""
        linears = set(weights.linear_names(self._spec))
        for name in self._checkpoint.names():
            if name not in linears:
                self._add(name, None)
                self._report(ctx, name)
        for index in range(len(self._spec.layers)):
            self._block(index, ctx)

    def bits_per_weight(self, folder: Path) -> float:
        """Bits of the INT8-X files per weight, tables, norms and headers counted."""
        size = sum(path.stat().st_size for path in folder.glob("*.safetensors"))
        return 8 * size / sum(self._sizes.values())

    def _block(self, index: int, ctx: JobContext) -> None:
        missing = [base for base in self._bases if not lowbit.has_block(self._folder, base, index)]
        fused: dict[LinearKind, torch.Tensor] = {}
        for kind in LINEAR_KINDS:
            names = weights.part_names(self._spec, index, kind)
            if not missing and all(self._writer.has(name) for name in names):
                self._done += sum(self._sizes[name] for name in names)
                self._report(ctx, names[0])
                continue
            fused[kind] = torch.cat([self._load(name) for name in names])
            self._report(ctx, names[0])
        for base in missing:
            lowbit.write_block(self._folder, base, index, fused)
            ctx.check()

    def _load(self, name: str) -> torch.Tensor:
        weight = self._checkpoint.load(name).float()
        self._add(name, weight)
        return weight

    def _add(self, name: str, tensor: torch.Tensor | None) -> None:
        self._done += self._sizes[name]
        self._coder.add(name, tensor)

    def _report(self, ctx: JobContext, note: str) -> None:
        ctx.progress("encode", self._done, sum(self._sizes.values()), "weights", note)
