"""How the GGUF converter of llama.cpp renames and rearranges each family, to be undone here.

Names and transforms: github.com/ggml-org/llama.cpp/blob/master/convert_hf_to_gguf.py.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import torch

_TOP = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
_BLOCK = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_HEAD_NORMS = {"attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm"}
_PHI3_BLOCK = {"attn_qkv": "self_attn.qkv_proj", "ffn_up": "mlp.gate_up_proj"}
_GEMMA3_BLOCK = _HEAD_NORMS | {
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}
_GGUF_NAME = re.compile(r"(?:blk\.(?P<block>\d{1,4})\.)?(?P<leaf>[a-z_]+)\.(?P<kind>weight|bias)")

# Not weights but tables of rotary factors; they become the configuration's rope_scaling.
ROPE_TABLES = ("rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight")


@dataclass(frozen=True, slots=True)
class Family:
    """One architecture. `permuted`: rows of q and k interleaved; `norm_offset`: added to norm weights."""

    model_type: str
    model_class: str
    permuted: bool = False
    norm_offset: float = 0.0
    block_names: dict[str, str] = field(default_factory=lambda: dict(_BLOCK))

    def hf_name(self, gguf_name: str) -> str | None:
        """The Hugging Face name of a GGUF tensor; None if the family has no such tensor."""
        match = _GGUF_NAME.fullmatch(gguf_name)
        if match is None:
            return None
        if match["block"] is None:
            stem = _TOP.get(match["leaf"])
            return f"{stem}.{match['kind']}" if stem else None
        stem = self.block_names.get(match["leaf"])
        return f"model.layers.{int(match['block'])}.{stem}.{match['kind']}" if stem else None

    def restore(self, name: str, values: torch.Tensor, n_heads: int, n_kv_heads: int) -> torch.Tensor:
        """Values as Hugging Face stores them under `name` (its Hugging Face name)."""
        if self.norm_offset and name.endswith("norm.weight"):
            return values.float() - self.norm_offset
        if self.permuted and ".q_proj." in name:
            return _unpermute(values, n_heads)
        if self.permuted and ".k_proj." in name:
            return _unpermute(values, n_kv_heads)
        return values


FAMILIES: dict[str, Family] = {
    "llama": Family("llama", "LlamaForCausalLM", permuted=True),
    "qwen2": Family("qwen2", "Qwen2ForCausalLM"),
    "qwen3": Family("qwen3", "Qwen3ForCausalLM", block_names=_BLOCK | _HEAD_NORMS),
    "phi3": Family("phi3", "Phi3ForCausalLM", block_names=_BLOCK | _PHI3_BLOCK),
    "gemma3": Family("gemma3_text", "Gemma3ForCausalLM", norm_offset=1.0, block_names=_BLOCK | _GEMMA3_BLOCK),
}


def _unpermute(values: torch.Tensor, n_heads: int) -> torch.Tensor:
    """Rows of each head from (pair, half) back to (half, pair) order; values [n_heads * head_dim, …]."""
    pairs = values.shape[0] // n_heads // 2
    split = values.reshape(n_heads, pairs, 2, *values.shape[1:])
    return split.transpose(1, 2).reshape(values.shape).contiguous()
