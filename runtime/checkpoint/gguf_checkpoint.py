"""A GGUF file as a checkpoint with Hugging Face names, shapes and values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from runtime.checkpoint.files import damaged, shown
from runtime.checkpoint.gguf_blocks import load_tensor, require_readable
from runtime.checkpoint.gguf_config import build_config
from runtime.checkpoint.gguf_families import FAMILIES, ROPE_TABLES, Family
from runtime.checkpoint.gguf_fields import GgufFields
from runtime.checkpoint.gguf_header import GgufHeader, GgufTensor, read_header
from runtime.checkpoint.gguf_tokenizer import write_gguf_tokenizer
from runtime.errors import DecdecError


class GgufCheckpoint:
    """Implements `runtime.checkpoint.base.Checkpoint`; all but the values is checked on construction."""

    def __init__(self, path: Path) -> None:
        self.path = path
        header = read_header(path)
        self._fields = _fields(path, header)
        self._family = FAMILIES[self._fields.architecture]
        self._tables = {name: tensor for name, tensor in header.tensors.items() if name in ROPE_TABLES}
        self.config: dict[str, Any] = build_config(
            self._fields, self._family, header.tensors, self._read_table
        )
        self._tensors = _rename(path, self._family, header, self.config)

    def names(self) -> list[str]:
        """All tensor names, in file order."""
        return list(self._tensors)

    def shape(self, name: str) -> tuple[int, ...]:
        """Shape of one tensor; DecdecError for an unknown name."""
        return self._find(name).shape

    def load(self, name: str) -> torch.Tensor:
        """One tensor: float32 from blocks, else as stored; arranged as Hugging Face does."""
        values = load_tensor(self.path, self._find(name))
        heads, kv_heads = self.config["num_attention_heads"], self.config["num_key_value_heads"]
        return self._family.restore(name, values, heads, kv_heads)

    def write_tokenizer(self, folder: Path) -> None:
        """Write the tokenizer, chat template and generation settings held in the metadata."""
        write_gguf_tokenizer(self._fields, folder)

    def _find(self, name: str) -> GgufTensor:
        if name not in self._tensors:
            raise damaged(
                self.path, f"there is no tensor {shown(name)}", "use a whole GGUF of a supported model"
            )
        return self._tensors[name]

    def _read_table(self, name: str) -> torch.Tensor | None:
        tensor = self._tables.get(name)
        if tensor is None:
            return None
        require_readable(self.path, tensor)
        return load_tensor(self.path, tensor).float()


def _fields(path: Path, header: GgufHeader) -> GgufFields:
    if header.metadata.get("split.count", 1) not in (0, 1):
        raise damaged(
            path, "it is one part of a split model", "join the parts with llama.cpp's gguf-split --merge"
        )
    architecture = header.metadata.get("general.architecture")
    if not isinstance(architecture, str) or architecture not in FAMILIES:
        raise DecdecError(
            f"{path.name} cannot be used",
            f"its architecture is {shown(str(architecture))}",
            f"choose a model of one of these: {', '.join(FAMILIES)}",
        )
    return GgufFields(path, header.metadata, architecture)


def _rename(path: Path, family: Family, header: GgufHeader, config: dict[str, Any]) -> dict[str, GgufTensor]:
    named: dict[str, GgufTensor] = {}
    for gguf_name, tensor in header.tensors.items():
        if gguf_name in ROPE_TABLES:
            continue
        name = family.hf_name(gguf_name)
        if name is None:
            raise damaged(
                path, f"it has an unknown tensor {shown(gguf_name)}", "choose a model of a supported family"
            )
        if name in named:
            raise damaged(path, f"two tensors are named {name}")
        require_readable(path, tensor)
        named[name] = tensor
    _check_heads(path, family, named, config)
    return named


def _check_heads(path: Path, family: Family, named: dict[str, GgufTensor], config: dict[str, Any]) -> None:
    """Rows that are to be rearranged must divide into heads of an even width."""
    heads = {".q_proj.": config["num_attention_heads"], ".k_proj.": config["num_key_value_heads"]}
    for name, tensor in named.items() if family.permuted else ():
        count = next((count for part, count in heads.items() if part in name), 0)
        if count and tensor.shape[0] % (2 * count):
            raise damaged(
                path, f"tensor {name} with {tensor.shape[0]} rows does not divide into {count} heads"
            )
