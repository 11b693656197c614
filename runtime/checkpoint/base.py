"""What every source of weights looks like to the rest of the runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import torch


class Checkpoint(Protocol):
    """A model's tensors by Hugging Face name, read lazily, plus its configuration.

    `config` is the content of a Hugging Face `config.json` (dict, unchecked by the reader beyond JSON shape).
    Names are those of `transformers` (`model.layers.0.self_attn.q_proj.weight`, …); `lm_head.weight` is
    absent when tied.
    """

    config: dict[str, Any]

    def names(self) -> list[str]:
        """All tensor names, in file order."""
        ...

    def shape(self, name: str) -> tuple[int, ...]:
        """Shape without reading data; KeyError-free: raises DecdecError for an unknown name."""
        ...

    def load(self, name: str) -> torch.Tensor:
        """One tensor in its natural floating type (float32, float16 or bfloat16; GGUF blocks as float32).

        Raises DecdecError naming the tensor when data are missing, truncated or of an unsupported type.
        """
        ...

    def write_tokenizer(self, folder: Path) -> None:
        """Write tokenizer(_config).json, generation_config.json and chat_template.jinja, where known."""
        ...
