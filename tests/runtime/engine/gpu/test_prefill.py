"""Prompts through panels against the float32 decoder with the same weights."""

from dataclasses import replace

import pytest
import torch

from kernels.gpu.attention.cache import new_device_cache
from runtime.engine.gpu.prefill import Prefill
from runtime.model.decoder import rms_norm
from tests.runtime.engine.gpu.device_models import device_model, lossless_blocks
from tests.runtime.model.tiny import FAMILIES

TOKENS = torch.randint(1, 97, (21,), generator=torch.Generator().manual_seed(5)).tolist()
CLOSE = 2e-2


def nothing():
    """Nobody asks to stop."""


def new_cache(model, bits=16):
    spec = model.spec
    return new_device_cache(
        len(spec.layers), spec.n_kv_heads, model.context, spec.head_dim, model.device, bits
    )


def prefill(model, corrected=True, bits=16, **settings):
    return Prefill(model, new_cache(model, bits), corrected=corrected, **settings)


def final(model, stream):
    """What the head is given, on the CPU."""
    return rms_norm(stream, model.norm, model.spec.norm_eps).cpu()


def off(found, exact):
    return float((found - exact).norm() / exact.norm())


def check(tiny, stream, decoder, tokens=TOKENS, bound=CLOSE):
    """The state is near, and the head's choice is the decoder's, or as good as it."""
    with torch.inference_mode():
        exact = decoder.hidden(torch.tensor(tokens))[-1:]
        found = final(tiny.model, stream)
        assert off(found, exact) < bound
        logits = decoder.logits(exact)[0]
        assert logits[decoder.logits(found).argmax()] > logits.max() - bound * logits.std()


# Few rows, where kernels take long in the interpreter.
FEW = {"hidden_size": 32, "intermediate_size": 32, "num_attention_heads": 2, "num_key_value_heads": 1}


# Both kinds of attention in two blocks: over more, the rounding of bf16 grows.
GEMMA = {"num_hidden_layers": 2, "layer_types": ["sliding_attention", "full_attention"]}


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family(family):
    tiny = device_model(family, "dense", **(GEMMA if family == "gemma3" else {}))
    check(tiny, prefill(tiny.model).run(TOKENS, 0, nothing), tiny.reference)


@pytest.mark.parametrize("family", ["qwen2", "gemma3"])
def test_corrections_come_before_biases_and_norms(family):
    tiny = device_model(family, "awq4", num_hidden_layers=1)
    check(tiny, prefill(tiny.model).run(TOKENS, 0, nothing), tiny.reference)


@pytest.mark.parametrize("base", ["awq3", "rtn4", "squeezellm3", "squeezellm4", "int8x", "int8"])
def test_every_base(base):
    sizes = FEW if base.startswith("int8") else {}
    tiny = device_model("llama", base, num_hidden_layers=1, **sizes)
    check(tiny, prefill(tiny.model).run(TOKENS, 0, nothing), tiny.reference)


def test_a_correction_brings_the_prompt_nearer_to_its_source():
    tiny = device_model("llama", "rtn3", num_hidden_layers=1)
    with torch.inference_mode():
        source = tiny.source.hidden(torch.tensor(TOKENS))[-1:]
    corrected, plain = (prefill(tiny.model, how).run(TOKENS, 0, nothing) for how in (True, False))
    check(tiny, corrected, tiny.reference)
    check(tiny, plain, tiny.base)
    assert 3 * off(final(tiny.model, corrected), source) < off(final(tiny.model, plain), source)


def test_linears_that_have_no_residual_stay_uncorrected():
    tiny = device_model("llama", "rtn3", num_hidden_layers=1)
    bare = device_model("llama", "rtn3", num_hidden_layers=1, residual=False)
    first, second = (prefill(model, how) for model, how in ((tiny.model, False), (bare.model, True)))
    assert torch.equal(first.run(TOKENS, 0, nothing), second.run(TOKENS, 0, nothing))
    assert second.memory.residuals == 0


@pytest.mark.parametrize("family", ["llama3-rope", "mistral-window", "gemma3"])
@pytest.mark.parametrize("bits", [16, 8])
def test_several_chunks_are_as_good_as_one(family, bits):
    tiny = device_model(family, "dense", **(GEMMA if family == "gemma3" else {"num_hidden_layers": 2}))
    for chunk in (1, 8, 20):
        check(tiny, prefill(tiny.model, bits=bits, chunk=chunk).run(TOKENS, 0, nothing), tiny.reference)


def test_small_panels_and_slices_add_up_to_the_same():
    tiny = device_model("llama", "rtn4", hidden_size=160, num_hidden_layers=1, num_attention_heads=4)
    parted = prefill(tiny.model, panel_bytes=1 << 12, slice_bytes=1 << 12)
    assert parted.memory.residuals == 2 * 128 * 320 // 2
    assert parted.memory.panels == 320 * 128 * 2
    check(tiny, parted.run(TOKENS, 0, nothing), tiny.reference)


def test_a_prompt_goes_on_where_the_cache_ends():
    tiny = device_model("qwen2", "dense", num_hidden_layers=2)
    prompt = prefill(tiny.model, chunk=8)
    prompt.run(TOKENS[:9], 0, nothing)
    check(tiny, prompt.run(TOKENS[9:], 9, nothing), tiny.reference)
    other = [5, 6, 7]
    check(tiny, prompt.run(other, 12, nothing), tiny.reference, TOKENS[:12] + other)


def test_a_stop_between_chunks_leaves_what_is_done():
    tiny = device_model("llama", "dense", num_hidden_layers=1)
    prompt = prefill(tiny.model, chunk=8)
    asked = []

    def stop():
        asked.append(prompt.done)
        if len(asked) == 3:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        prompt.run(TOKENS, 0, stop)
    assert asked == [0, 8, 16]
    assert prompt.done == 16
    check(tiny, prompt.run(TOKENS[16:], 16, nothing), tiny.reference)
    assert prompt.done == len(TOKENS) - 16


def test_the_lossless_linears_take_the_place_of_all_others():
    tiny = device_model("qwen2", "rtn3", num_hidden_layers=1, **FEW)
    prompt = prefill(tiny.model)
    pairs = zip(tiny.model.blocks, lossless_blocks(tiny), strict=True)
    blocks = [replace(block, linears=linears) for block, linears in pairs]
    check(tiny, prompt.run(TOKENS, 0, nothing, blocks), tiny.source)
    check(tiny, prompt.run(TOKENS, 0, nothing), tiny.reference)


def test_what_does_not_fit_is_refused():
    tiny = device_model("llama", "dense", num_hidden_layers=1, context=16)
    prompt = prefill(tiny.model)
    for tokens, start in (([], 0), (TOKENS[:8], 9), (TOKENS[:8], -1)):
        with pytest.raises(ValueError, match="do not fit 16"):
            prompt.run(tokens, start, nothing)
    with pytest.raises(ValueError, match="chunk of 0"):
        prefill(tiny.model, chunk=0)
