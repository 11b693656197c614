"""Shapes of the models that are measured with random weights."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

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
        """Weights of embedding and output layer, which are not tied."""
        return 2 * self.vocabulary * self.hidden


# The paper's model: https://huggingface.co/openbmb/MiniCPM5-1B, 1,080,632,832 parameters with its norms.
MINICPM = ModelShape("MiniCPM5-1B", 24, 1536, 4608, 16, 2, 128, 130_560)
# https://huggingface.co/meta-llama/Meta-Llama-3-8B
LLAMA = ModelShape("Llama-3-8B", 32, 4096, 14_336, 32, 8, 128, 128_256)
RANDOM_MODELS = (MINICPM, LLAMA)
