"""Tiny random models of every family, made by transformers, and their state as a Checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM

COMMON: dict[str, Any] = {
    "vocab_size": 97,
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "pad_token_id": 0,
    "attn_implementation": "eager",
}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}
LONGROPE = {
    "rope_type": "longrope",
    "rope_theta": 10000.0,
    "short_factor": [1.0, 1.5, 2.0, 3.0],
    "long_factor": [4.0, 5.0, 6.0, 7.0],
    "original_max_position_embeddings": 64,
}
FAMILIES: dict[str, dict[str, Any]] = {
    "llama": {"model_type": "llama"},
    "llama-tied": {
        "model_type": "llama",
        "tie_word_embeddings": True,
        "attention_bias": True,
        "mlp_bias": True,
    },
    "llama3-rope": {"model_type": "llama", "rope_parameters": LLAMA3, "head_dim": 16},
    "llama-linear": {
        "model_type": "llama",
        "rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 100.0},
    },
    "mistral-window": {"model_type": "mistral", "sliding_window": 7},
    "qwen2": {"model_type": "qwen2", "tie_word_embeddings": True},
    "qwen3": {"model_type": "qwen3", "head_dim": 16},
    "phi3": {"model_type": "phi3", "sliding_window": 9},
    "phi3-longrope": {"model_type": "phi3", "rope_parameters": LONGROPE},
    "gemma3": {
        "model_type": "gemma3_text",
        "head_dim": 16,
        "query_pre_attn_scalar": 20,
        "sliding_window": 5,
        "num_hidden_layers": 7,
    },
}


class StateCheckpoint:
    """A transformers model as a Checkpoint."""

    def __init__(self, config: dict[str, Any], state: dict[str, torch.Tensor]) -> None:
        self.config, self._state = config, state
        if config.get("tie_word_embeddings"):
            self._state.pop("lm_head.weight", None)

    def names(self) -> list[str]:
        return list(self._state)

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(self._state[name].shape)

    def load(self, name: str) -> torch.Tensor:
        return self._state[name]

    def write_tokenizer(self, folder: Path) -> None:
        raise NotImplementedError


def tiny_model(family: str, spread: float = 0.12, **changes: Any) -> tuple[torch.nn.Module, StateCheckpoint]:
    """A random fp32 transformers model of the family, and the same weights as a Checkpoint.

    spread: standard deviation of the matrices; small ones keep rounding errors from growing layer by layer.
    """
    settings = {**COMMON, **FAMILIES[family], **changes}
    config = AutoConfig.for_model(settings.pop("model_type"), **settings)
    torch.manual_seed(1)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter) * (0.3 if parameter.dim() == 1 else spread))
            if parameter.dim() == 1:
                parameter.add_(1.0)
    return model, StateCheckpoint(config.to_dict(), dict(model.state_dict()))
