"""A checkpoint walked block by block, for work that needs every weight once and not all at a time."""

from __future__ import annotations

from pathlib import Path

import torch

from runtime.checkpoint import Checkpoint, open_checkpoint
from runtime.layers.base import LINEAR_KINDS, LinearKind
from runtime.layers.dense import Dense
from runtime.model import weights
from runtime.model.build import bare_block
from runtime.model.decoder import Block, Decoder
from runtime.model.spec import ModelSpec


class SourceModel:
    """A checkpoint walked block by block: only embedding, head and one block's weights are in memory."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.checkpoint, self.spec = checkpoint, ModelSpec.from_config(checkpoint.config)
        table = checkpoint.load(weights.EMBEDDING).float()
        head = table if self.spec.tied else checkpoint.load(weights.HEAD).float()
        norm = weights.norm_weight(checkpoint, self.spec, weights.FINAL_NORM, self.spec.hidden)
        self.decoder = Decoder(self.spec, lambda tokens: table[tokens], [], norm, Dense(head))

    @classmethod
    def open(cls, path: Path) -> SourceModel:
        """The model at a path of weights."""
        return cls(open_checkpoint(path))

    def embed(self, tokens: torch.Tensor) -> torch.Tensor:
        """States before the first block, float32 [T, hidden]."""
        return self.decoder.embed(tokens) * self.spec.embedding_scale

    def parts(self, index: int) -> dict[LinearKind, tuple[torch.Tensor, ...]]:
        """A block's weights, float32, tensor by tensor; stacked they make the fused linear."""
        loaded: dict[LinearKind, tuple[torch.Tensor, ...]] = {}
        for kind in LINEAR_KINDS:
            fused = weights.fused_weight(self.checkpoint, self.spec, index, kind)
            names = weights.part_names(self.spec, index, kind)
            loaded[kind] = fused.split([self.checkpoint.shape(name)[0] for name in names])
        return loaded

    def bare_block(self, index: int) -> Block:
        """A block's norms and biases, without linears."""
        return bare_block(self.checkpoint, self.spec, index, {})
