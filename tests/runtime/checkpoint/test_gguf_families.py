"""Tiny models of every family: written as llama.cpp's converter would, read back as transformers has them."""

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from runtime.checkpoint import open_checkpoint
from runtime.errors import DecdecError
from tests.runtime.checkpoint.tiny_gguf import tiny_model, write_model

LLAMA3 = {
    "rope_type": "llama3", "rope_theta": 500000.0, "factor": 32.0, "low_freq_factor": 1.0,
    "high_freq_factor": 4.0, "original_max_position_embeddings": 8192,
}  # fmt: skip
LONGROPE = {
    "rope_type": "longrope", "rope_theta": 10000.0, "original_max_position_embeddings": 128,
    "short_factor": [1.0 + i / 8 for i in range(8)], "long_factor": [1.5 + i for i in range(8)],
}  # fmt: skip
YARN = {"rope_type": "yarn", "rope_theta": 1e6, "factor": 4.0, "original_max_position_embeddings": 64}
GEMMA_ROPE = {
    "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
    "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
}
CASES = {
    "llama": ("llama", {}),
    "llama-untied": ("llama", {"tie_word_embeddings": False}),
    "llama-biases": ("llama", {"attention_bias": True, "mlp_bias": True}),
    "llama3-rope": ("llama", {"rope_parameters": LLAMA3, "max_position_embeddings": 32768}),
    "qwen2": ("qwen2", {}),
    "qwen2-yarn": ("qwen2", {"rope_parameters": YARN}),
    "qwen3-wide-heads": ("qwen3", {"head_dim": 32}),
    "phi3": ("phi3", {"tie_word_embeddings": False}),
    "phi3-long": ("phi3", {"rope_parameters": LONGROPE, "max_position_embeddings": 512}),
    "gemma3": ("gemma3_text", {"sliding_window": 8, "num_hidden_layers": 7, "rope_parameters": GEMMA_ROPE,
                               "query_pre_attn_scalar": 16}),
}  # fmt: skip
LLAMA = tiny_model("llama")
# Fields no GGUF states and no computation uses.
UNSTATED = {"_name_or_path", "dtype", "architectures", "transformers_version", "initializer_range"}


@pytest.mark.parametrize("case", CASES)
def test_model_comes_back_as_transformers_has_it(case, tmp_path):
    model_type, changes = CASES[case]
    model = tiny_model(model_type, **changes)
    checkpoint = open_checkpoint(write_model(tmp_path / "m.gguf", model))
    state = {name: checkpoint.load(name) for name in checkpoint.names()}
    expected = dict(model.state_dict())
    if model.config.tie_word_embeddings:
        del expected["lm_head.weight"]
    assert set(state) == set(expected)
    for name, values in expected.items():
        assert checkpoint.shape(name) == values.shape
        torch.testing.assert_close(state[name], values, rtol=0, atol=1e-6)
    assert_same_logits(model, checkpoint, state)


def assert_same_logits(model, checkpoint, state):
    """The configuration is right if a model built from it alone computes the same."""
    rebuilt = AutoModelForCausalLM.from_config(AutoConfig.for_model(**checkpoint.config)).eval()
    rebuilt.load_state_dict(state, strict=False)
    rebuilt.tie_weights()
    tokens = torch.arange(3, 53)[None]
    with torch.inference_mode():
        torch.testing.assert_close(rebuilt(tokens).logits, model(tokens).logits, rtol=1e-4, atol=1e-4)
    ours, theirs = rebuilt.config.to_dict(), model.config.to_dict()
    different = {key for key in theirs if key not in UNSTATED and not close(ours.get(key), theirs[key])}
    assert different == set()


def close(a, b):
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(close(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(close, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return a == pytest.approx(b, rel=1e-4)
    return a == b


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("general.architecture", "mamba", "architecture is mamba"),
        ("ARCH.expert_count", 8, "mixture of experts"),
        ("ARCH.attention.head_count", 0, "head_count is 0"),
        ("ARCH.attention.head_count", 5, "5 heads do not divide"),
        ("ARCH.attention.head_count_kv", 64, "does not divide into 64 heads"),
        ("ARCH.attention.head_count_kv", [2, 2], "head_count_kv is"),
        ("ARCH.block_count", 4_000_000_000, "block_count is 4000000000"),
        ("ARCH.rope.freq_base", float("nan"), "freq_base is nan"),
        ("ARCH.rope.freq_base", -1.0, "freq_base is -1.0"),
        ("ARCH.rope.dimension_count", 7, "rotates 7 dimensions"),
        ("ARCH.rope.scaling.type", "strange", "scaling strange is unknown"),
        ("ARCH.embedding_length", "wide", "embedding_length is 'wide'"),
        ("split.count", 3, "split"),
    ],
)
def test_odd_metadata_is_one_sentence_naming_the_key(key, value, sentence, tmp_path):
    path = write_model(tmp_path / "m.gguf", LLAMA, {key: value})
    with pytest.raises(DecdecError, match=sentence) as caught:
        open_checkpoint(path)
    assert caught.value.sentence.count("\n") == 0


def test_unknown_rotary_table_is_refused(tmp_path):
    model = tiny_model("llama", rope_parameters=LLAMA3 | {"low_freq_factor": 2.0})
    with pytest.raises(DecdecError, match="unknown rotary scaling"):
        open_checkpoint(write_model(tmp_path / "m.gguf", model))


def test_unknown_tensor_name(tmp_path):
    checkpoint = open_checkpoint(write_model(tmp_path / "m.gguf", LLAMA))
    for read in (checkpoint.load, checkpoint.shape):
        with pytest.raises(DecdecError, match=r"no tensor model\.layers\.9"):
            read("model.layers.9.mlp.up_proj.weight")
