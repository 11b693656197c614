"""Running one block after the other on the device that computes: the CPU, or a GPU by plain torch."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import fields, replace
from typing import Any

import psutil
import torch

from runtime import device
from runtime.errors import DecdecError
from runtime.layers.dense import Dense
from runtime.model.cache import SinglePass
from runtime.model.decoder import Block, rms_norm
from runtime.model.source import SourceModel

# States of all rows may take this much, or a quarter of what is free if that is more.
STATE_BYTES = 256 << 20
FREE_SHARE = 4


def compute_device() -> torch.device:
    """The device of DECDEC_DEVICE, the CPU where it says nothing; DecdecError when there is no such GPU."""
    index = device.wanted_gpu()
    if index is None:
        return torch.device("cpu")
    if not torch.cuda.is_available() or index >= torch.cuda.device_count():
        raise DecdecError(
            f"The GPU number {index} cannot be used", "torch finds no such device", f"unset {device.VARIABLE}"
        )
    return torch.device("cuda", index)


class Runner:
    """Steps states through blocks of a source model. Head and final norm move to the device at once."""

    def __init__(self, model: SourceModel, where: torch.device) -> None:
        self.model, self.device = model, where
        decoder = model.decoder
        if isinstance(decoder.head, Dense):
            decoder.head = Dense(decoder.head.weight.to(where))
        decoder.norm = decoder.norm.to(where)

    def embed(self, tokens: torch.Tensor) -> torch.Tensor:
        """States before the first block, float32 [T, hidden] on the device."""
        return self.model.embed(tokens).to(self.device)

    def block(self, index: int) -> Block:
        """A block's norms and biases on the device, without linears."""
        bare = self.model.bare_block(index)
        norms = {f.name: getattr(bare.norms, f.name) for f in fields(bare.norms)}
        moved: dict[str, Any] = {n: p if p is None else p.to(self.device) for n, p in norms.items()}
        biases = {kind: bias.to(self.device) for kind, bias in bare.biases.items()}
        return Block(bare.layer, replace(bare.norms, **moved), {}, biases)

    def step(self, block: Block, h: torch.Tensor) -> torch.Tensor:
        """States float32 [T, hidden] behind a block."""
        with self.defaults():
            return self.model.decoder.run_block(h, 0, block, SinglePass())

    def logits(self, h: torch.Tensor) -> torch.Tensor:
        """Logits float32 [T, vocab] of last states."""
        decoder = self.model.decoder
        return decoder.logits(rms_norm(h, decoder.norm, self.model.spec.norm_eps))

    def defaults(self) -> AbstractContextManager[object]:
        """While open, new tensors are made on the device: masks, rope tables, what kernels allocate."""
        return nullcontext() if self.device.type == "cpu" else self.device

    def state_bytes(self) -> int:
        """How many bytes the states of all rows may take together."""
        free: int = psutil.virtual_memory().available
        if self.device.type == "cuda":
            free = torch.cuda.mem_get_info(self.device)[0]
        return max(STATE_BYTES, free // FREE_SHARE)
