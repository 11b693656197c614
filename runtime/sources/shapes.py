"""Shapes of a Llama-like decoder, and the weights they add up to."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import msgspec

Count = Annotated[int, msgspec.Meta(ge=1, le=1 << 24)]


class LinearShape(NamedTuple):
    """A fused linear layer's weight [n_out, n_in]."""

    n_out: int
    n_in: int

    @property
    def weights(self) -> int:
        """Number of weights."""
        return self.n_out * self.n_in


class ModelShape(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The numbers of a `config.json` that decide the size of a dense decoder without biases.

    `norms_per_layer` counts norms of the hidden size (Llama 2, Gemma 3 has 4); `qk_norm` adds one norm of a
    head's size for queries and one for keys. `tied`: the embedding table is the lm_head too.
    """

    layers: Count
    hidden: Count
    intermediate: Count
    heads: Count
    kv_heads: Count
    head_dim: Count
    vocabulary: Count
    tied: bool
    norms_per_layer: Count
    qk_norm: bool

    def __post_init__(self) -> None:
        if self.heads % self.kv_heads:
            raise ValueError("heads must be a multiple of kv_heads")

    @property
    def linears(self) -> dict[str, LinearShape]:
        """The four fused linears of one layer: qkv, o, gate_up, down."""
        attention = self.heads * self.head_dim
        return {
            "qkv": LinearShape(attention + 2 * self.kv_heads * self.head_dim, self.hidden),
            "o": LinearShape(self.hidden, attention),
            "gate_up": LinearShape(2 * self.intermediate, self.hidden),
            "down": LinearShape(self.hidden, self.intermediate),
        }

    @property
    def linear_weights(self) -> int:
        """Weights of all decoder linears."""
        return self.layers * sum(shape.weights for shape in self.linears.values())

    @property
    def table_weights(self) -> int:
        """Weights of the embedding table; an untied lm_head has as many again."""
        return self.vocabulary * self.hidden

    @property
    def norm_weights(self) -> int:
        """Weights of all norms."""
        per_layer = self.norms_per_layer * self.hidden + 2 * self.head_dim * self.qk_norm
        return self.layers * per_layer + self.hidden

    @property
    def parameters(self) -> int:
        """All weights; a tied table counts once."""
        return self.linear_weights + self.norm_weights + self.table_weights * (1 if self.tied else 2)
