"""From a checkpoint to a whole INT8-X folder."""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import Any

import torch

from kernels.int8x import Granularity
from runtime.checkpoint import Checkpoint, open_checkpoint
from runtime.errors import DecdecError
from runtime.int8x.choice import CodecChoice
from runtime.int8x.origin import fingerprint
from runtime.int8x.writer import AUTO, Int8xWriter
from runtime.progress import JobContext
from runtime.store import atomic, require_space

CONFIG = "config.json"
# Embedding and head are always coded row by row: rare tokens have the largest entries, one scale leaves
# the common ones 4 bits, and nothing behind a table corrects its error (SmolLM2 then answers in French).
TABLES = frozenset({"model.embed_tokens.weight", "lm_head.weight"})


def encode_checkpoint(
    source: Path, folder: Path, granularity: Granularity, ctx: JobContext, choice: CodecChoice = AUTO
) -> dict[str, Any]:
    """Code every matrix of `source` (folder or GGUF) into `folder`; returns the quantization_config.

    Continues what an interrupted run left in `folder`; `config.json` is written last. Progress "encode"
    in weights. DecdecError if `folder` already holds a model, or names the tensor that cannot be coded.
    """
    if (folder / CONFIG).exists():
        raise DecdecError(f"{folder} already holds a model", "it has a config.json", "choose another folder")
    checkpoint = open_checkpoint(source)
    writer = Int8xWriter(folder, granularity, choice=choice, source=fingerprint(source))
    _require_room(writer, checkpoint, folder)
    _add_all(writer, checkpoint, ctx)
    quantization = writer.finish()
    checkpoint.write_tokenizer(folder)
    atomic.write_json(folder / CONFIG, {**checkpoint.config, "quantization_config": quantization})
    return quantization


def add_tensor(
    writer: Int8xWriter, checkpoint: Checkpoint, name: str, tensor: torch.Tensor | None = None
) -> None:
    """Matrices are coded, everything else is stored as it is; nothing happens if the tensor is done.

    `tensor`: the checkpoint's tensor where the caller has it already.
    """
    if writer.has(name):
        return
    tensor = checkpoint.load(name) if tensor is None else tensor
    if tensor.dim() == 2:
        writer.add(name, tensor, "row" if name in TABLES else None)
    else:
        writer.add_plain(name, tensor)


def _add_all(writer: Int8xWriter, checkpoint: Checkpoint, ctx: JobContext) -> None:
    sizes = {name: prod(checkpoint.shape(name)) for name in checkpoint.names()}
    done, total = 0, sum(sizes.values())
    for name, size in sizes.items():
        ctx.progress("encode", done, total, "weights", name)
        add_tensor(writer, checkpoint, name)
        done += size
    ctx.progress("encode", total, total, "weights")


def _require_room(writer: Int8xWriter, checkpoint: Checkpoint, folder: Path) -> None:
    # A byte per weight is the most a matrix can take: raw bytes are the fallback.
    left = sum(prod(checkpoint.shape(name)) for name in checkpoint.names() if not writer.has(name))
    require_space(folder, left)
