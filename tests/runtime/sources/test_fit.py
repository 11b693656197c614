"""The forecast of what fits against the engine's own plans, and of speed against what was measured."""

import pytest

from runtime.engine.gpu.contents import expected_contents
from runtime.engine.gpu.plan import SMALLEST_CONTEXT as ENGINE_CONTEXT
from runtime.engine.gpu.plan import Wishes, _Planner, fitting_base
from runtime.engine.memory import needed_bytes
from runtime.model.spec import ModelSpec
from runtime.sources import catalogue
from runtime.sources.fit import (
    COMFORTABLE_CONTEXT,
    OFFERED,
    SMALLEST_CONTEXT,
    Lack,
    Room,
    cache_bytes,
    cpu_bytes,
    fit,
    gpu_bytes,
    written_bytes,
)
from runtime.sources.speed import CpuRates, GpuRates, lossless_tokens_per_s, tokens_per_s

GB = 10**9
ARCHITECTURES = {
    "llama": ("LlamaForCausalLM", "llama"),
    "qwen3": ("Qwen3ForCausalLM", "qwen3"),
    "phi3": ("Phi3ForCausalLM", "phi3"),
}
LARGE = [entry for entry in catalogue.load() if entry.family in ARCHITECTURES and entry.parameters > 5e8]


def spec_of(entry):
    shape, (architecture, kind) = entry.shape, ARCHITECTURES[entry.family]
    return ModelSpec.from_config(
        {
            "architectures": [architecture],
            "model_type": kind,
            "hidden_size": shape.hidden,
            "intermediate_size": shape.intermediate,
            "num_attention_heads": shape.heads,
            "num_key_value_heads": shape.kv_heads,
            "head_dim": shape.head_dim,
            "num_hidden_layers": shape.layers,
            "vocab_size": shape.vocabulary,
            "rms_norm_eps": 1e-5,
            "max_position_embeddings": 8192,
            "rope_theta": 1e5,
            "tie_word_embeddings": shape.tied,
        }
    )


def shape(name):
    return catalogue.find(name).shape


@pytest.mark.parametrize("entry", LARGE, ids=lambda entry: entry.name)
@pytest.mark.parametrize("base", OFFERED)
def test_a_gpu_needs_what_the_engine_plans(entry, base):
    plan = _Planner(expected_contents(spec_of(entry), base), 1 << 60, Wishes()).smallest()
    assert SMALLEST_CONTEXT == ENGINE_CONTEXT
    assert gpu_bytes(entry.shape, OFFERED[base], SMALLEST_CONTEXT) == pytest.approx(plan.needed, rel=0.06)


@pytest.mark.parametrize("entry", LARGE, ids=lambda entry: entry.name)
def test_a_cpu_needs_what_the_engine_asks_for(entry):
    for lossless in (False, True):
        assert abs(cpu_bytes(entry.shape, lossless) - needed_bytes(spec_of(entry), "awq4", lossless)) <= 1


@pytest.mark.parametrize("entry", LARGE, ids=lambda entry: entry.name)
def test_what_is_said_to_fit_the_engine_takes(entry):
    """Just below what is enough for the forecast, the engine would load the same base or none."""
    for base, mode in OFFERED.items():
        free = gpu_bytes(entry.shape, mode, SMALLEST_CONTEXT)
        assert fit(entry.shape, Room(free, 64 * GB), 0).base == base
        assert fitting_base(spec_of(entry), int(free * 1.02)) is not None


def test_a_cache_token_is_a_key_and_a_value_of_every_layer():
    assert cache_bytes(shape("Meta-Llama-3-8B-Instruct"), 1) == 2 * 32 * 8 * 128 * 2


def test_8_billion_weights_in_6_gb():
    found = fit(shape("Meta-Llama-3-8B-Instruct"), Room(5 * GB, 12 * GB, 60 * GB), 16 * GB)
    assert (found.base, found.lossless, found.corrected, found.lacks) == ("awq4", False, 1.0, ())
    assert found.memory == gpu_bytes(shape("Meta-Llama-3-8B-Instruct"), "low4", COMFORTABLE_CONTEXT)
    assert found.disk == 16 * GB + written_bytes(shape("Meta-Llama-3-8B-Instruct"))


def test_in_4_gb_it_takes_three_bits_and_in_3_gb_it_does_not_fit():
    llama = shape("Meta-Llama-3-8B-Instruct")
    assert fit(llama, Room(4 * GB, 12 * GB), 0).base == "int8x3"
    missing = fit(llama, Room(3 * GB, 12 * GB), 0)
    needed = gpu_bytes(llama, "low3", SMALLEST_CONTEXT)
    assert missing.lacks == (Lack("VRAM", needed - 3 * GB),)


def test_a_large_gpu_holds_the_lossless_form_too():
    assert fit(shape("Meta-Llama-3-8B-Instruct"), Room(24 * GB, 32 * GB), 0).lossless


def test_little_host_memory_corrects_less():
    llama = shape("Meta-Llama-3-8B-Instruct")
    whole = fit(llama, Room(6 * GB, 12 * GB), 0)
    half = fit(llama, Room(6 * GB, whole.host - (whole.host - 400_000_000) // 2), 0)
    assert 0.4 < half.corrected < 0.6
    assert half.lacks == ()
    assert fit(llama, Room(6 * GB, 100_000_000), 0).lacks[0].where == "RAM"


def test_a_cpu_and_its_disk():
    qwen = shape("Qwen3-4B")
    assert fit(qwen, Room(None, 16 * GB, 100 * GB), 8 * GB).lossless
    small = fit(qwen, Room(None, 4 * GB, 10 * GB), 8 * GB)
    assert [lack.where for lack in small.lacks] == ["RAM", "disk"]
    assert small.lacks[1].bytes == 8 * GB + written_bytes(qwen) - 10 * GB


H200 = GpuRates(4183.0)
# docs/benchmarks/decode-gpu.md and int8x-gpu.md, one H200.
MEASURED = {
    "MiniCPM5-1B": 1859,
    "Llama-3.2-3B-Instruct": 1086,
    "Meta-Llama-3-8B-Instruct": 671,
    "Phi-3-medium-4k-instruct": 406,
}
# Tuned as random weights of these shapes on the same kind of card, a whole token without correction.
MEASURED |= {"Llama-3.2-1B-Instruct": 2285, "Qwen3-4B": 765}
LOSSLESS = {"MiniCPM5-1B": 1560, "Meta-Llama-3-8B-Instruct": 501, "Phi-3-medium-4k-instruct": 285}


@pytest.mark.parametrize(("name", "measured"), MEASURED.items())
def test_speed_on_a_gpu_is_nearly_what_was_measured(name, measured):
    assert tokens_per_s(shape(name), "awq4", H200) == pytest.approx(measured, rel=0.16)


@pytest.mark.parametrize(("name", "measured"), LOSSLESS.items())
def test_lossless_speed_on_a_gpu_is_nearly_what_was_measured(name, measured):
    assert lossless_tokens_per_s(shape(name), H200) == pytest.approx(measured, rel=0.15)


def test_fewer_bits_and_less_to_read_are_faster():
    slow, fast = CpuRates(5.0, 6.0), CpuRates(10.0, 12.0)
    for name in MEASURED:
        model = shape(name)
        assert tokens_per_s(model, "awq4", fast) > tokens_per_s(model, "awq4", slow)
        assert tokens_per_s(model, "awq4", slow) > lossless_tokens_per_s(model, slow)
        assert tokens_per_s(model, "int8x3", H200) > tokens_per_s(model, "awq4", H200)
