"""The decoder against transformers' logits on tiny random models of every family."""

import pytest
import torch

from runtime.errors import DecdecError
from runtime.model.build import build_dense
from runtime.model.cache import KVCache
from runtime.model.spec import ModelSpec
from tests.runtime.model.tiny import FAMILIES, tiny_model

TOKENS = torch.randint(0, 97, (29,), generator=torch.Generator().manual_seed(5))


@pytest.mark.parametrize("family", FAMILIES)
def test_logits_equal_transformers(family):
    model, checkpoint = tiny_model(family)
    with torch.inference_mode():
        expected = model(TOKENS[None]).logits[0]
        logits = build_dense(checkpoint).forward(TOKENS)
    assert (logits - expected).abs().max() <= 1e-4
    assert expected.std() > 0.1, "a model without signal would pass anything"


@pytest.mark.parametrize("family", ["llama3-rope", "mistral-window", "gemma3"])
def test_prefill_in_pieces_equals_one_pass(family):
    _, checkpoint = tiny_model(family)
    decoder = build_dense(checkpoint)
    cache = KVCache(decoder.spec, 40)
    with torch.inference_mode():
        whole = decoder.forward(TOKENS)
        pieces = torch.cat([decoder.forward(part, cache) for part in TOKENS.split([10, 1, 18])])
    assert torch.allclose(pieces, whole, atol=1e-4)
    assert cache.length == len(TOKENS)


def test_truncated_cache_forgets():
    _, checkpoint = tiny_model("llama")
    decoder = build_dense(checkpoint)
    cache = KVCache(decoder.spec, 40)
    with torch.inference_mode():
        decoder.forward(TOKENS, cache)
        cache.truncate(4)
        again = decoder.forward(TOKENS[4:], cache)
        whole = decoder.forward(TOKENS)
    assert torch.allclose(again, whole[4:], atol=1e-4)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"model_type": "mamba"}, "mamba"),
        ({"num_key_value_heads": 4}, "share"),
        ({"vocab_size": 1 << 40}, "vocab_size"),
        ({"hidden_act": "relu"}, "relu"),
        ({"rope_parameters": {"rope_type": "dynamic", "factor": 2}}, "dynamic"),
        ({"hidden_size": None}, "configuration"),
        ({"num_attention_heads": 0}, "num_attention_heads is 0"),
        ({"num_key_value_heads": -2}, "num_key_value_heads is -2"),
        ({"head_dim": -32}, "-32 dimensions"),
        ({"max_position_embeddings": -1}, "max_position_embeddings is -1"),
        ({"rms_norm_eps": float("nan")}, "rms_norm_eps is nan"),
    ],
)
def test_unsupported_configurations_are_refused_in_a_sentence(change, word):
    _, checkpoint = tiny_model("llama")
    with pytest.raises(DecdecError, match=word):
        ModelSpec.from_config({**checkpoint.config, **change})


def test_a_tensor_of_wrong_shape_is_named():
    _, checkpoint = tiny_model("llama")
    checkpoint._state["model.layers.1.mlp.down_proj.weight"] = torch.zeros(48, 79)
    with pytest.raises(DecdecError, match=r"model\.layers\.1\.mlp\.down_proj"):
        build_dense(checkpoint)
