"""From a checkpoint to a whole INT8-X folder."""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import Any

import msgspec
import torch

from kernels.int8x import Granularity
from runtime.calibration.prompts import checkpoint_texts
from runtime.checkpoint import Checkpoint, open_checkpoint
from runtime.errors import DecdecError
from runtime.int8x.choice import CodecChoice
from runtime.int8x.config import tensor_error
from runtime.int8x.origin import fingerprint
from runtime.int8x.writer import AUTO, Int8xWriter
from runtime.layers.base import LinearKind
from runtime.model.spec import ModelSpec
from runtime.model.weights import linear_places
from runtime.progress import JobContext
from runtime.protocol.quality import Quality
from runtime.rate import Kept, Rounder, make_rounder
from runtime.store import atomic, require_space

CONFIG = "config.json"
# Embedding and head are always coded row by row: rare tokens have the largest entries, one scale leaves
# the common ones 4 bits, and nothing behind a table corrects its error (SmolLM2 then answers in French).
TABLES = frozenset({"model.embed_tokens.weight", "lm_head.weight"})


def encode_checkpoint(
    source: Path, folder: Path, quality: Quality, ctx: JobContext, choice: CodecChoice = AUTO
) -> dict[str, Any]:
    """Code every matrix of `source` (folder or GGUF) into `folder`; returns the quantization_config.

    Continues what an interrupted run left in `folder`; `config.json` is written last. Progress "encode"
    in weights. DecdecError if `folder` already holds a model, or names the tensor that cannot be coded.
    """
    if (folder / CONFIG).exists():
        raise DecdecError(f"{folder} already holds a model", "it has a config.json", "choose another folder")
    checkpoint = open_checkpoint(source)
    origin = fingerprint(source)
    writer = open_writer(folder, quality, choice, origin)
    _require_room(writer, checkpoint, folder)
    rounder = make_rounder(
        checkpoint, quality, lambda: checkpoint_texts(checkpoint), ctx, Kept(folder, origin)
    )
    encode_tensors(TensorCoder(writer, checkpoint, rounder), checkpoint, ctx)
    quantization = writer.finish()
    checkpoint.write_tokenizer(folder)
    atomic.write_json(folder / CONFIG, {**checkpoint.config, "quantization_config": quantization})
    return quantization


def open_writer(folder: Path, quality: Quality, choice: CodecChoice, source: str) -> Int8xWriter:
    """A writer for a quality; matrices that are no decoder linear get one scale only where that was asked."""
    granularity: Granularity = "tensor" if quality.granularity == "tensor" else "row"
    made_for = msgspec.to_builtins(quality)
    wish = {key: value for key, value in made_for.items() if value is not None}
    return Int8xWriter(folder, granularity, choice=choice, source=source, quality=wish)


class TensorCoder:
    """Gives each tensor of a checkpoint to a writer in the form that belongs to it."""

    def __init__(self, writer: Int8xWriter, checkpoint: Checkpoint, rounder: Rounder) -> None:
        self._writer, self._checkpoint, self._rounder = writer, checkpoint, rounder
        self._places: dict[str, tuple[int, LinearKind, int]] = {}
        if rounder.plan is not None:
            self._places = linear_places(ModelSpec.from_config(checkpoint.config), checkpoint.shape)

    def add(self, name: str) -> None:
        """Matrices are coded, everything else is stored as it is; nothing happens if the tensor is done."""
        if self._writer.has(name):
            return
        tensor = self._checkpoint.load(name)
        if tensor.dim() != 2:
            self._writer.add_plain(name, tensor)
        elif name in self._places:
            self._add_linear(name, tensor)
        else:
            self._writer.add(name, tensor, "row" if name in TABLES else None)

    def _add_linear(self, name: str, weight: torch.Tensor) -> None:
        block, kind, first_row = self._places[name]
        try:
            matrix = self._rounder.round(block, kind, weight, first_row)
        except ValueError as error:
            raise tensor_error(name, str(error), "use an undamaged copy of the model") from error
        self._writer.add_quantised(name, matrix.q, matrix.scales)


def encode_tensors(coder: TensorCoder, checkpoint: Checkpoint, ctx: JobContext) -> None:
    """Give every tensor of a checkpoint to a coder; progress "encode" in weights."""
    sizes = {name: prod(checkpoint.shape(name)) for name in checkpoint.names()}
    done, total = 0, sum(sizes.values())
    for name, size in sizes.items():
        ctx.progress("encode", done, total, "weights", name)
        coder.add(name)
        done += size
    ctx.progress("encode", total, total, "weights")


def _require_room(writer: Int8xWriter, checkpoint: Checkpoint, folder: Path) -> None:
    # A byte per weight is the most a matrix can take: raw bytes are the fallback.
    left = sum(prod(checkpoint.shape(name)) for name in checkpoint.names() if not writer.has(name))
    require_space(folder, left)
