"""What is asked of memory before a model is loaded."""

from types import SimpleNamespace

import pytest

from runtime.engine import memory
from runtime.errors import DecdecError
from runtime.model.spec import ModelSpec

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 8,
    "num_key_value_heads": 8,
    "vocab_size": 32000,
    "max_position_embeddings": 4096,
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": True,
}


@pytest.fixture
def spec():
    return ModelSpec.from_config(CONFIG)


def free(monkeypatch, size):
    monkeypatch.setattr(memory.psutil, "virtual_memory", lambda: SimpleNamespace(available=size))


def test_a_base_takes_what_its_layers_hold(spec):
    weights = 32 * (4 * 1024**2 + 3 * 1024 * 4096)
    without = memory.needed_bytes(spec, "int8", False)
    assert memory.needed_bytes(spec, "int8", True) - without == weights
    group, table = (memory.needed_bytes(spec, base, False) - without for base in ("awq3", "squeezellm3"))
    assert weights < group < 1.3 * weights
    assert 2 * weights < table < 3 * weights


def test_what_does_not_fit_is_refused_and_lossless_layers_only_where_they_fit(spec, monkeypatch):
    needed = memory.needed_bytes(spec, "awq4", False)
    free(monkeypatch, needed - 1)
    with pytest.raises(DecdecError, match="does not fit in memory"):
        memory.require_memory(spec, "awq4")
    free(monkeypatch, needed + 1)
    assert not memory.require_memory(spec, "awq4")
    free(monkeypatch, 2 * memory.needed_bytes(spec, "awq4", True))
    assert memory.require_memory(spec, "awq4")
