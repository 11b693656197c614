"""A model folder in Hugging Face layout: config.json, safetensors, tokenizer files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from runtime.checkpoint.files import damaged, require_finite, shown, unreadable
from runtime.checkpoint.folder_tokenizer import copy_tokenizer
from runtime.checkpoint.hf_config import read_config, text_name
from runtime.checkpoint.safetensors_header import FLOAT_DTYPES
from runtime.checkpoint.shards import Located, locate
from runtime.errors import DecdecError


class FolderCheckpoint:
    """Implements `runtime.checkpoint.base.Checkpoint`; every header is validated on construction."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config: dict[str, Any] = read_config(folder)
        self._tensors: dict[str, Located] = {}
        for name, where in locate(folder).items():
            plain = text_name(name)
            if plain in self._tensors:
                raise damaged(where.file, f"two tensors are named {shown(plain)}")
            if plain is not None:
                self._tensors[plain] = where

    def names(self) -> list[str]:
        """All tensor names, in file order."""
        return list(self._tensors)

    def shape(self, name: str) -> tuple[int, ...]:
        """Shape of one tensor; DecdecError for an unknown name."""
        return self._find(name).entry.shape

    def load(self, name: str) -> torch.Tensor:
        """One tensor as stored (float32, float16 or bfloat16); DecdecError for any other type."""
        where = self._find(name)
        if where.entry.dtype not in FLOAT_DTYPES:
            raise damaged(
                where.file,
                f"tensor {shown(name)} holds {where.entry.dtype} values, not floating-point weights",
                "use a checkpoint with bfloat16, float16 or float32 weights",
            )
        return require_finite(where.file, name, _read(where))

    def write_tokenizer(self, folder: Path) -> None:
        """Copy the tokenizer, chat template and generation settings; code is never copied."""
        copy_tokenizer(self.folder, folder, self.config)

    def _find(self, name: str) -> Located:
        try:
            return self._tensors[name]
        except KeyError:
            raise DecdecError(
                f"The weights in {self.folder} are incomplete",
                f"there is no tensor {shown(name)}",
                "download the model again, or choose one of a supported family",
            ) from None


def _read(where: Located) -> torch.Tensor:
    try:
        with safe_open(where.file, framework="pt", device="cpu") as file:
            tensor: torch.Tensor = file.get_tensor(where.entry.name)
    except OSError as error:
        raise unreadable(where.file, error) from error
    except (SafetensorError, RuntimeError, ValueError) as error:
        raise damaged(
            where.file, f"tensor {shown(where.entry.name)} cannot be read ({shown(str(error))})"
        ) from error
    if tuple(tensor.shape) != where.entry.shape:
        raise damaged(
            where.file, f"tensor {shown(where.entry.name)} changed while it was read", "start again"
        )
    return tensor
