"""A GGUF's metadata as the content of a Hugging Face config.json."""

from __future__ import annotations

from typing import Any

from runtime.checkpoint.files import damaged
from runtime.checkpoint.gguf_families import Family
from runtime.checkpoint.gguf_fields import GgufFields
from runtime.checkpoint.gguf_header import GgufTensor
from runtime.checkpoint.gguf_rope import ReadTable, rope_scaling

_DEFAULT_THETA = 10000.0
_INTEGERS = {
    "hidden_size": "embedding_length",
    "intermediate_size": "feed_forward_length",
    "max_position_embeddings": "context_length",
    "num_attention_heads": "attention.head_count",
    "num_hidden_layers": "block_count",
}
_TOKEN_IDS = {
    "bos_token_id": "bos_token_id",
    "eos_token_id": "eos_token_id",
    "pad_token_id": "padding_token_id",
}
# Gemma 3 27B alone scales its queries by the width of a head of the hidden size, and no key says so.
_GEMMA3_27B_LAYERS = 62


def build_config(
    fields: GgufFields, family: Family, tensors: dict[str, GgufTensor], read_table: ReadTable
) -> dict[str, Any]:
    """The configuration of the model; raises DecdecError naming the key that is missing or odd."""
    if fields.has_own("expert_count") and fields.integer(f"{fields.architecture}.expert_count"):
        raise damaged(
            fields.path, "it is a mixture of experts, which is not supported", "choose a dense model"
        )
    config: dict[str, Any] = {"architectures": [family.model_class], "model_type": family.model_type}
    config |= {name: fields.own_integer(key) for name, key in _INTEGERS.items()}
    config["num_key_value_heads"] = fields.own_integer(
        "attention.head_count_kv", config["num_attention_heads"]
    )
    config["rms_norm_eps"] = fields.own_real("attention.layer_norm_rms_epsilon")
    config["vocab_size"] = _embedding_rows(fields, tensors)
    config["tie_word_embeddings"] = "output.weight" not in tensors
    ids = {name: fields.integer(f"tokenizer.ggml.{key}") for name, key in _TOKEN_IDS.items()}
    config |= {
        name: value for name, value in ids.items() if value is not None and value < config["vocab_size"]
    }
    config["head_dim"] = _head_dim(fields, config)
    config |= _rotary(fields, read_table, config["head_dim"])
    return config | _family_fields(fields, family, tensors, config)


def _embedding_rows(fields: GgufFields, tensors: dict[str, GgufTensor]) -> int:
    embedding = tensors.get("token_embd.weight")
    if embedding is None or len(embedding.shape) != 2:
        raise damaged(fields.path, "it has no token_embd.weight matrix", "use a whole GGUF of a text model")
    return embedding.shape[0]


def _head_dim(fields: GgufFields, config: dict[str, Any]) -> int:
    if fields.has_own("attention.key_length"):
        return fields.own_integer("attention.key_length")
    hidden, heads = config["hidden_size"], config["num_attention_heads"]
    if hidden % heads:
        raise damaged(fields.path, f"{heads} heads do not divide the hidden size {hidden}")
    return int(hidden // heads)


def _rotary(fields: GgufFields, read_table: ReadTable, head_dim: int) -> dict[str, Any]:
    theta = fields.own_real("rope.freq_base", _DEFAULT_THETA)
    n_rotary = fields.own_integer("rope.dimension_count", head_dim)
    if n_rotary > head_dim or n_rotary % 2:
        raise damaged(fields.path, f"it rotates {n_rotary} dimensions of heads of {head_dim}")
    rotary: dict[str, Any] = {"rope_theta": theta}
    if n_rotary < head_dim:
        rotary["partial_rotary_factor"] = n_rotary / head_dim
    scaling = rope_scaling(fields, read_table, theta, n_rotary)
    return rotary | ({"rope_scaling": scaling} if scaling else {})


def _family_fields(
    fields: GgufFields, family: Family, tensors: dict[str, GgufTensor], config: dict[str, Any]
) -> dict[str, Any]:
    if family.model_type == "llama":
        return {"attention_bias": "blk.0.attn_q.bias" in tensors, "mlp_bias": "blk.0.ffn_up.bias" in tensors}
    if family.model_type == "phi3":
        return _phi3_fields(fields, config)
    if family.model_type == "gemma3_text":
        return _gemma3_fields(fields, config)
    return {}


def _phi3_fields(fields: GgufFields, config: dict[str, Any]) -> dict[str, Any]:
    context = config["max_position_embeddings"]
    extra = {
        "original_max_position_embeddings": fields.own_integer(
            "rope.scaling.original_context_length", context
        )
    }
    if fields.has_own("attention.sliding_window"):
        extra["sliding_window"] = fields.own_integer("attention.sliding_window")
    return extra


def _gemma3_fields(fields: GgufFields, config: dict[str, Any]) -> dict[str, Any]:
    large = config["num_hidden_layers"] == _GEMMA3_27B_LAYERS
    query_width = config["hidden_size"] // config["num_attention_heads"] if large else config["head_dim"]
    return {
        "query_pre_attn_scalar": query_width,
        "rope_local_base_freq": fields.own_real("rope.freq_base_swa", _DEFAULT_THETA),
        "sliding_window": fields.own_integer("attention.sliding_window"),
    }
