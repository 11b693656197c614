"""Shapes of the models that are measured with random weights."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

from runtime.layers.base import LinearKind

Shape = tuple[int, int]


@dataclass(frozen=True, slots=True)
class ModelShape:
    """A Llama: `blocks` decoder blocks, `heads` query and `kv_heads` key and value heads of `head_size`."""

    name: str
    blocks: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_size: int
    vocabulary: int
    tied: bool = False

    @property
    def linears(self) -> dict[LinearKind, Shape]:
        """(n_out, n_in) of a block's fused linears, in the order in which a token meets them."""
        attention = self.heads * self.head_size
        return {
            "qkv": (attention + 2 * self.kv_heads * self.head_size, self.hidden),
            "o": (self.hidden, attention),
            "gate_up": (2 * self.intermediate, self.hidden),
            "down": (self.hidden, self.intermediate),
        }

    @property
    def linear_weights(self) -> int:
        """Weights of all decoder linears."""
        return self.blocks * sum(prod(shape) for shape in self.linears.values())

    @property
    def table_weights(self) -> int:
        """Weights of embedding and output layer; tied ones count once."""
        return (1 if self.tied else 2) * self.vocabulary * self.hidden

    def config(self, context: int) -> dict[str, Any]:
        """A Hugging Face configuration for sequences of up to `context` tokens."""
        return {
            "model_type": "llama",
            "vocab_size": self.vocabulary,
            "hidden_size": self.hidden,
            "intermediate_size": self.intermediate,
            "num_hidden_layers": self.blocks,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads,
            "head_dim": self.head_size,
            "max_position_embeddings": context,
            "tie_word_embeddings": self.tied,
        }


# The paper's model: https://huggingface.co/openbmb/MiniCPM5-1B, 1,080,632,832 parameters with its norms.
MINICPM = ModelShape("MiniCPM5-1B", 24, 1536, 4608, 16, 2, 128, 130_560)
# https://huggingface.co/meta-llama/Meta-Llama-3-8B
LLAMA = ModelShape("Llama-3-8B", 32, 4096, 14_336, 32, 8, 128, 128_256)
# https://huggingface.co/meta-llama/Llama-3.2-3B
LLAMA_3B = ModelShape("Llama-3.2-3B", 28, 3072, 8192, 24, 8, 128, 128_256, tied=True)
# https://huggingface.co/microsoft/Phi-3-medium-4k-instruct
PHI = ModelShape("Phi-3-medium", 40, 5120, 17_920, 40, 10, 128, 32_064)
RANDOM_MODELS = (MINICPM, LLAMA)
BY_NAME = {shape.name: shape for shape in (MINICPM, LLAMA, LLAMA_3B, PHI)}
