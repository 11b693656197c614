"""A model folder in Hugging Face layout: config.json, safetensors, tokenizer files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from runtime.checkpoint.folder_tokenizer import copy_tokenizer
from runtime.checkpoint.hf_config import read_config
from runtime.checkpoint.shards import locate
from runtime.checkpoint.tensor_files import TensorFiles


class FolderCheckpoint(TensorFiles):
    """Implements `runtime.checkpoint.base.Checkpoint`; every header is validated on construction."""

    def __init__(self, folder: Path) -> None:
        self.config: dict[str, Any] = read_config(folder)
        super().__init__(folder, locate(folder))

    def write_tokenizer(self, folder: Path) -> None:
        """Copy the tokenizer, chat template and generation settings; code is never copied."""
        copy_tokenizer(self.folder, folder, self.config)
