"""What is asked of memory before a model is loaded."""

from types import SimpleNamespace

import pytest
import torch

from kernels.dec.residual import quantise_residual
from kernels.dec.rtn import dequantise, quantise_rtn
from runtime.engine import memory
from runtime.errors import DecdecError
from runtime.layers.base import LINEAR_KINDS
from runtime.layers.compensated import Compensated
from runtime.layers.correction import Correction
from runtime.layers.lowbit import base_layer
from runtime.model.spec import ModelSpec
from runtime.model.weights import linear_shape

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


def held(shape):
    """Bytes of a layer of this shape as the CPU really keeps it."""
    weight = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    base = quantise_rtn(weight, 4)
    correction = Correction.alone(quantise_residual(weight - dequantise(base)), torch.zeros(shape[1]))
    return Compensated(base_layer(base, None), correction).bytes_in_memory()


@pytest.mark.parametrize(
    "sizes",
    [
        {},
        {"intermediate_size": 1000},
        {"hidden_size": 1000, "head_dim": 126},
        {"hidden_size": 1032, "head_dim": 130, "intermediate_size": 4100},
    ],
    ids=["usual", "inputs of down", "hidden", "everything"],
)
def test_unusual_sizes_are_counted_as_their_layers_hold_them(sizes):
    spec = ModelSpec.from_config({**CONFIG, "num_hidden_layers": 2, **sizes})
    really = 2 * sum(held(linear_shape(spec, kind)) for kind in LINEAR_KINDS)
    assert really <= memory.base_bytes(spec, "awq4") < 1.15 * really


def test_what_does_not_fit_is_refused_and_lossless_layers_only_where_they_fit(spec, monkeypatch):
    needed = memory.needed_bytes(spec, "awq4", False)
    free(monkeypatch, needed - 1)
    with pytest.raises(DecdecError, match="does not fit in memory"):
        memory.require_memory(spec, "awq4")
    free(monkeypatch, needed + 1)
    assert not memory.require_memory(spec, "awq4")
    free(monkeypatch, 2 * memory.needed_bytes(spec, "awq4", True))
    assert memory.require_memory(spec, "awq4")
