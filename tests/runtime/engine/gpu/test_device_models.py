"""The tiny device models are what their tests take them for."""

import pytest
import torch

from runtime.layers.base import LINEAR_KINDS
from tests.runtime.engine.gpu.device_models import device_model, lossless_blocks
from tests.runtime.model.tiny import FAMILIES

TOKENS = torch.arange(1, 20)


def off(decoder, source):
    with torch.inference_mode():
        a, b = decoder.hidden(TOKENS), source.hidden(TOKENS)
    return float((a - b).norm() / b.norm())


@pytest.mark.parametrize("base", ["awq4", "rtn3", "squeezellm3", "squeezellm4", "int8x"])
def test_residuals_bring_a_base_nearer_to_its_source(base):
    tiny = device_model("llama", base)
    assert 0 < 3 * off(tiny.reference, tiny.source) < off(tiny.base, tiny.source)


@pytest.mark.parametrize("base", ["int8", "dense"])
def test_what_is_nearly_lossless_has_no_residual(base):
    tiny = device_model("qwen2", base)
    assert off(tiny.reference, tiny.source) < 0.03
    assert all(linear.residual is None for block in tiny.model.blocks for linear in block.linears.values())


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_has_its_parts(family):
    tiny = device_model(family, num_hidden_layers=2)
    model = tiny.model
    assert len(model.blocks) == len(model.spec.layers) == 2
    assert all(tuple(block.linears) == LINEAR_KINDS for block in model.blocks)
    assert (model.blocks[0].linears["qkv"].bias is not None) == (family in ("qwen2", "llama-tied"))
    assert model.ropes[0][0].shape[0] == model.context
    assert torch.equal(model.embedding.rows(TOKENS).cpu(), tiny.source.embed(TOKENS))
    assert model.bytes_on_device() > 0


def test_lossless_linears_keep_shapes_and_biases():
    tiny = device_model("qwen2")
    for block, exact in zip(tiny.model.blocks, lossless_blocks(tiny), strict=True):
        for kind, linear in block.linears.items():
            assert (exact[kind].weights.rows, exact[kind].weights.columns) == (
                linear.weights.rows,
                linear.weights.columns,
            )
            assert (exact[kind].bias is None) == (linear.bias is None)
