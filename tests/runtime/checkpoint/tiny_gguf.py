"""Tiny GGUF files, written by the gguf package the way llama.cpp's converter would."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from gguf.constants import GGMLQuantizationType as Kind
from transformers import AutoConfig, AutoModelForCausalLM

ARCHITECTURES = {
    "llama": "llama",
    "qwen2": "qwen2",
    "qwen3": "qwen3",
    "phi3": "phi3",
    "gemma3_text": "gemma3",
}
BYTES = [chr(c) for c in (*range(33, 127), *range(161, 173), *range(174, 256), *range(256, 324))]
CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
PAIRS = ["h e", "l l", "he ll", "hell o", "Ġ w", "o r", "Ġw or", "l d", "Ġwor ld"]
TEMPLATE = "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
TOKENS = CONTROL + BYTES + [pair.replace(" ", "") for pair in PAIRS]


def tiny_model(model_type: str, **changes: Any) -> Any:
    """A random transformers model whose norms and biases are not at their uninformative defaults."""
    settings = {
        "vocab_size": len(TOKENS), "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "max_position_embeddings": 256,
        "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0, "tie_word_embeddings": True,
        "initializer_range": 0.2,
    }  # fmt: skip
    torch.manual_seed(7)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(model_type, **(settings | changes))).eval()
    for parameter in model.parameters():
        if parameter.ndim == 1:
            torch.nn.init.normal_(parameter, std=0.3)
    return model


def write_model(path: Path, model: Any, extra: dict[str, Any] | None = None) -> Path:
    """A model as an F32 GGUF: the gguf package's names, q and k interleaved, Gemma's norms plus one."""
    config = model.config
    architecture = ARCHITECTURES[config.model_type]
    writer = gguf.GGUFWriter(path, architecture)
    add_shape_keys(writer, architecture, config)
    add_tokenizer(writer)
    for key, value in (extra or {}).items():
        add_key(writer, key.replace("ARCH", architecture), value)
    code = next(k for k, v in gguf.MODEL_ARCH_NAMES.items() if v == architecture)
    names = gguf.get_tensor_name_map(code, config.num_hidden_layers)
    for name, values in model.state_dict().items():
        if not (name == "lm_head.weight" and config.tie_word_embeddings):
            gguf_name = names.get_name(name, try_suffixes=(".weight", ".bias"))
            writer.add_tensor(gguf_name, converted(config, name, values).numpy())
    for name, table in rope_tables(model).items():
        writer.add_tensor(name, table.float().numpy())
    return finish(writer, path)


def add_shape_keys(writer: gguf.GGUFWriter, architecture: str, config: Any) -> None:
    parameters = config.rope_parameters.get("full_attention", config.rope_parameters)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(parameters["rope_theta"])
    if architecture in ("qwen3", "gemma3"):
        writer.add_key_length(config.head_dim)
    if architecture == "gemma3":
        writer.add_sliding_window(config.sliding_window)
    if parameters["rope_type"] in ("linear", "yarn"):
        writer.add_string(f"{architecture}.rope.scaling.type", parameters["rope_type"])
        writer.add_rope_scaling_factor(parameters["factor"])
        writer.add_rope_scaling_orig_ctx_len(parameters.get("original_max_position_embeddings", 0))
    if architecture == "phi3":
        writer.add_rope_scaling_orig_ctx_len(config.original_max_position_embeddings)


def add_tokenizer(writer: gguf.GGUFWriter) -> None:
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(TOKENS)
    writer.add_token_types([3] * len(CONTROL) + [1] * (len(TOKENS) - len(CONTROL)))
    writer.add_token_merges(PAIRS)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_pad_token_id(0)
    writer.add_add_bos_token(False)
    writer.add_chat_template(TEMPLATE)


def add_key(writer: gguf.GGUFWriter, key: str, value: Any) -> None:
    kinds = {bool: writer.add_bool, int: writer.add_uint32, float: writer.add_float32, str: writer.add_string}
    writer.kv_data[-1].pop(key, None)
    (writer.add_array if isinstance(value, list) else kinds[type(value)])(key, value)


def converted(config: Any, name: str, values: torch.Tensor) -> torch.Tensor:
    """A parameter as llama.cpp's converter stores it."""
    if config.model_type == "gemma3_text" and "norm" in name:
        return values + 1
    heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
    for part, n_heads in heads.items():
        if config.model_type == "llama" and part in name:
            halves = values.reshape(n_heads, 2, values.shape[0] // n_heads // 2, *values.shape[1:])
            return halves.swapaxes(1, 2).reshape(values.shape)
    return values


def rope_tables(model: Any) -> dict[str, torch.Tensor]:
    """Tables of rotary factors as llama.cpp wants them; Llama 3's out of transformers' own frequencies."""
    parameters = model.config.rope_parameters
    if parameters.get("rope_type") == "llama3":
        n_rotary = model.config.head_dim
        plain = parameters["rope_theta"] ** -(torch.arange(0, n_rotary, 2).double() / n_rotary)
        return {"rope_freqs.weight": plain / model.model.rotary_emb.inv_freq.double()}
    if parameters.get("rope_type") == "longrope":
        return {
            f"rope_factors_{n}.weight": torch.tensor(parameters[f"{n}_factor"]) for n in ("short", "long")
        }
    return {}


def write_blocks(path: Path, raw: np.ndarray, kind: Kind) -> Path:
    """A llama GGUF with the embedding stored as raw rows of `kind` and nothing else of note."""
    writer = gguf.GGUFWriter(path, "llama")
    for key, value in SMALL.items():
        add_key(writer, key, value)
    writer.add_tensor("token_embd.weight", raw, raw_dtype=kind)
    return finish(writer, path)


def finish(writer: gguf.GGUFWriter, path: Path) -> Path:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


SMALL = {
    "llama.block_count": 1, "llama.context_length": 32, "llama.embedding_length": 32,
    "llama.feed_forward_length": 32, "llama.attention.head_count": 2,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
}  # fmt: skip
