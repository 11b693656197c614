"""Decoders made from a checkpoint."""

from __future__ import annotations

import torch

from runtime.checkpoint.base import Checkpoint
from runtime.layers.base import LINEAR_KINDS, Linear, LinearKind
from runtime.layers.dense import Dense
from runtime.model import weights
from runtime.model.decoder import Block, Decoder
from runtime.model.spec import ModelSpec


def build_dense(checkpoint: Checkpoint, dtype: torch.dtype = torch.float32) -> Decoder:
    """The reference decoder with dense weights of `dtype`; holds the whole model in memory."""
    spec = ModelSpec.from_config(checkpoint.config)
    table = checkpoint.load(weights.EMBEDDING).to(dtype)
    head = table if spec.tied else checkpoint.load(weights.HEAD).to(dtype)
    blocks = [_dense_block(checkpoint, spec, index, dtype) for index in range(len(spec.layers))]
    norm = weights.norm_weight(checkpoint, spec, weights.FINAL_NORM, spec.hidden)
    return Decoder(spec, lambda tokens: table[tokens].float(), blocks, norm, Dense(head))


def _dense_block(checkpoint: Checkpoint, spec: ModelSpec, index: int, dtype: torch.dtype) -> Block:
    linears: dict[LinearKind, Linear] = {
        kind: Dense(weights.fused_weight(checkpoint, spec, index, kind).to(dtype)) for kind in LINEAR_KINDS
    }
    return bare_block(checkpoint, spec, index, linears)


def bare_block(
    checkpoint: Checkpoint, spec: ModelSpec, index: int, linears: dict[LinearKind, Linear]
) -> Block:
    """A block with norms and biases from the checkpoint and the given linears."""
    biases = {
        kind: bias
        for kind in LINEAR_KINDS
        if (bias := weights.fused_bias(checkpoint, spec, index, kind)) is not None
    }
    return Block(spec.layers[index], weights.block_norms(checkpoint, spec, index), linears, biases)
