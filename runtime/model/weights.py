"""From a checkpoint's tensor names to the decoder's fused linears, norms and biases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from runtime.checkpoint.base import Checkpoint
from runtime.errors import DecdecError
from runtime.layers.base import LinearKind
from runtime.model.spec import ModelSpec

EMBEDDING = "model.embed_tokens.weight"
HEAD = "lm_head.weight"
FINAL_NORM = "model.norm.weight"

_PARTS: dict[LinearKind, tuple[str, ...]] = {
    "qkv": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "o": ("self_attn.o_proj",),
    "gate_up": ("mlp.gate_proj", "mlp.up_proj"),
    "down": ("mlp.down_proj",),
}
_PHI3_PARTS: dict[LinearKind, tuple[str, ...]] = {
    **_PARTS,
    "qkv": ("self_attn.qkv_proj",),
    "gate_up": ("mlp.gate_up_proj",),
}


@dataclass(frozen=True, slots=True)
class BlockNorms:
    """RMSNorm weights of a block, float32, offset already added; None where the family has no such norm."""

    attention: torch.Tensor
    mlp: torch.Tensor
    q: torch.Tensor | None = None
    k: torch.Tensor | None = None
    post_attention: torch.Tensor | None = None
    post_mlp: torch.Tensor | None = None


def part_names(spec: ModelSpec, block: int, kind: LinearKind) -> tuple[str, ...]:
    """Tensor names whose rows, stacked in this order, make the fused linear."""
    parts = _PHI3_PARTS if spec.family == "phi3" else _PARTS
    return tuple(f"model.layers.{block}.{part}.weight" for part in parts[kind])


def linear_names(spec: ModelSpec) -> list[str]:
    """Names of every decoder linear, block by block."""
    kinds = tuple(_PARTS)
    return [name for b in range(len(spec.layers)) for kind in kinds for name in part_names(spec, b, kind)]


def linear_places(
    spec: ModelSpec, shape: Callable[[str], tuple[int, ...]]
) -> dict[str, tuple[int, LinearKind, int]]:
    """(block, kind, first row in the fused linear) of every decoder linear; `shape` gives a tensor's."""
    places: dict[str, tuple[int, LinearKind, int]] = {}
    for block in range(len(spec.layers)):
        for kind in _PARTS:
            first = 0
            for name in part_names(spec, block, kind):
                places[name] = block, kind, first
                first += shape(name)[0]
    return places


def linear_shape(spec: ModelSpec, kind: LinearKind) -> tuple[int, int]:
    """(n_out, n_in) of a fused linear."""
    return {
        "qkv": (spec.q_size + 2 * spec.kv_size, spec.hidden),
        "o": (spec.hidden, spec.q_size),
        "gate_up": (2 * spec.intermediate, spec.hidden),
        "down": (spec.hidden, spec.intermediate),
    }[kind]


def fused_weight(checkpoint: Checkpoint, spec: ModelSpec, block: int, kind: LinearKind) -> torch.Tensor:
    """The fused matrix, float32 [n_out, n_in]; a wrong shape is refused with the tensors' names."""
    names = part_names(spec, block, kind)
    weight = torch.cat([checkpoint.load(name).float() for name in names])
    if tuple(weight.shape) != linear_shape(spec, kind):
        raise DecdecError(
            f"Tensor {' + '.join(names)} has the wrong shape",
            f"{tuple(weight.shape)} instead of {linear_shape(spec, kind)}",
        )
    return weight


def fused_bias(checkpoint: Checkpoint, spec: ModelSpec, block: int, kind: LinearKind) -> torch.Tensor | None:
    """The fused bias, float32 [n_out], or None. Parts without one count as zero."""
    names = [name.removesuffix("weight") + "bias" for name in part_names(spec, block, kind)]
    known = set(checkpoint.names())
    if not any(name in known for name in names):
        return None
    sizes = [checkpoint.shape(name)[0] for name in part_names(spec, block, kind)]
    parts = [
        checkpoint.load(n).float() if n in known else torch.zeros(size)
        for n, size in zip(names, sizes, strict=True)
    ]
    return torch.cat(parts)


def norm_weight(checkpoint: Checkpoint, spec: ModelSpec, name: str, size: int) -> torch.Tensor:
    """A norm's weight, float32 [size], with the family's offset added (Gemma multiplies by 1 + w)."""
    weight = checkpoint.load(name).float() + spec.norm_offset
    if weight.shape != (size,):
        raise DecdecError(f"Tensor {name} has the wrong shape", f"{tuple(weight.shape)} instead of ({size},)")
    return weight


def block_norms(checkpoint: Checkpoint, spec: ModelSpec, block: int) -> BlockNorms:
    """All norms of a block."""
    prefix = f"model.layers.{block}."

    def read(name: str, size: int = spec.hidden) -> torch.Tensor:
        return norm_weight(checkpoint, spec, f"{prefix}{name}.weight", size)

    q, k = (read(f"self_attn.{n}_norm", spec.head_dim) for n in "qk") if spec.qk_norm else (None, None)
    if not spec.post_norms:
        return BlockNorms(read("input_layernorm"), read("post_attention_layernorm"), q, k)
    return BlockNorms(
        read("input_layernorm"),
        read("pre_feedforward_layernorm"),
        q,
        k,
        read("post_attention_layernorm"),
        read("post_feedforward_layernorm"),
    )
