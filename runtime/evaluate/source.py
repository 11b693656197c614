"""The source's own weights of a model, and its tokens of a text."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
from tokenizers import Tokenizer

from runtime import sources, store
from runtime.checkpoint import Checkpoint, open_checkpoint
from runtime.errors import DecdecError
from runtime.layers.base import LINEAR_KINDS, LinearKind
from runtime.layers.dense import Dense
from runtime.model import weights
from runtime.model.build import bare_block
from runtime.model.decoder import Block, Decoder
from runtime.model.spec import ModelSpec
from runtime.progress import JobContext

Encode = Callable[[str], list[int]]


def locate(model: str, ctx: JobContext) -> Path:
    """Path of the weights: one given directly, those a prepared model was made from, or fetched."""
    if Path(model).exists():
        return Path(model)
    for record in store.models():
        origin = str(record.record.get("source_path", ""))
        if record.name == model and origin and Path(origin).exists():
            return Path(origin)
    return sources.resolve(model).fetch(ctx)


def encoder(checkpoint: Checkpoint) -> Encode:
    """Text to token ids without special tokens around them."""
    with tempfile.TemporaryDirectory(prefix="decdec-") as folder:
        checkpoint.write_tokenizer(Path(folder))
        tokenizer = Tokenizer.from_file(str(Path(folder) / "tokenizer.json"))

    def encode(text: str) -> list[int]:
        ids: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    return encode


def read_text(path: Path) -> str:
    """A UTF-8 file, every kind of line end read as one newline, so that figures are the same everywhere."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DecdecError(f"The text {path} cannot be read", str(error), "give a UTF-8 text file") from error


def windows(tokens: list[int], context: int, count: int | None) -> list[torch.Tensor]:
    """Non-overlapping int64 [context] from the start; DecdecError when not even one fits."""
    whole = len(tokens) // context
    if whole == 0:
        raise DecdecError(
            "The text is too short", f"it has {len(tokens)} tokens, a window has {context}", "lower --context"
        )
    rows = min(whole, count or whole)
    return list(torch.tensor(tokens[: rows * context], dtype=torch.int64).view(rows, context))


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
