"""Known answers: compressed-tensors and transformers read exactly the numbers that we decode."""

import json

import pytest
import torch
from compressed_tensors.compressors.pack_quantized import pack_to_int32, unpack_from_int32
from compressed_tensors.quantization import QuantizationConfig
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

from runtime.export import jobs
from runtime.export.folding import find_folds
from runtime.export.packing import bfloat16_values, pack
from runtime.int8x import Int8xReader
from runtime.model.build import build_dense
from runtime.model.spec import ModelSpec
from tests.runtime.export.conftest import QUIET, aware_scales, write_int8x
from tests.runtime.model.tiny import tiny_model

TOKENS = torch.randint(0, 97, (12,), generator=torch.Generator().manual_seed(5))
CASES = [
    ("llama", "aware", {"intermediate_size": 77}),
    ("llama", "aware", {"num_key_value_heads": 6}),
    ("llama-tied", "aware", {"num_key_value_heads": 6}),
    ("llama3-rope", "row", {}),
    ("mistral-window", "tensor", {}),
    ("qwen2", "aware", {}),
    ("qwen3", "aware", {}),
    ("phi3", "aware", {"num_key_value_heads": 6}),
    ("gemma3", "aware", {}),
]


class Dequantised:
    """An INT8-X model as a plain checkpoint; `rounded`: what went out as bfloat16."""

    def __init__(self, reader, rounded=()):
        self.config, self.names, self.shape = reader.config, reader.names, reader.shape
        self._reader, self._rounded = reader, {f"{module}.weight" for module in rounded}

    def load(self, name):
        values = self._reader.load(name)
        return values.bfloat16().float() if name in self._rounded else values


def distance(a, b):
    return float((a - b).norm() / b.norm())


@pytest.mark.parametrize(("family", "granularity", "changes"), CASES)
def test_transformers_computes_what_our_weights_say(exported, family, granularity, changes):
    reader, folder, result = exported(family, granularity, **changes)
    theirs = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    with torch.inference_mode():
        logits = theirs(TOKENS[None]).logits[0]
        same_rounding = build_dense(Dequantised(reader, result["bf16_modules"])).forward(TOKENS)
        exact = build_dense(Dequantised(reader)).forward(TOKENS)
    assert distance(logits, same_rounding) < 2e-5
    assert distance(logits, exact) < 0.04


@pytest.mark.parametrize(("family", "granularity", "changes"), CASES)
def test_every_integer_is_ours(exported, family, granularity, changes):
    reader, folder, result = exported(family, granularity, **changes)
    stored = load_file(folder / "model.safetensors")
    found = 0
    for name in reader.coded_names():
        matrix, module = reader.quantised(name), name.removesuffix(".weight")
        if module in result["bf16_modules"]:
            assert torch.equal(stored[name], matrix.dequantise().bfloat16())
            continue
        shape = stored[f"{module}.weight_shape"]
        assert shape.tolist() == list(matrix.q.shape)
        assert torch.equal(unpack_from_int32(stored[f"{module}.weight_packed"], 8, shape), matrix.q)
        scale = stored[f"{module}.weight_scale"]
        assert (scale.dtype, tuple(scale.shape)) == (torch.float32, (matrix.q.shape[0], 1))
        if granularity != "aware":
            assert torch.equal(matrix.q * scale, matrix.dequantise())
        found += 1
    assert found == result["int8_matrices"] > 0


def test_scales_without_factors_go_out_bit_by_bit_and_norms_as_they_are(exported):
    reader, folder, result = exported("qwen3", "row")
    stored = load_file(folder / "model.safetensors")
    assert (result["folded_norms"], result["folded_matrices"]) == (0, 0)
    assert result["bf16_modules"] == ["model.embed_tokens", "lm_head"]
    for name in set(reader.names()) - set(reader.coded_names()):
        assert stored[name].dtype == reader.plain(name).dtype
        assert torch.equal(stored[name], reader.plain(name))


def test_output_projections_stay_int8_only_where_each_head_has_its_own_values(exported):
    _, _, shared = exported("llama", num_key_value_heads=2)
    assert [m for m in shared["bf16_modules"] if "o_proj" in m] == [
        f"model.layers.{i}.self_attn.o_proj" for i in range(3)
    ]


def test_with_values_of_its_own_every_linear_is_int8(exported):
    _, folder, result = exported("llama", num_key_value_heads=6)
    assert result["bf16_modules"] == ["model.embed_tokens", "lm_head"]
    assert result["int8_matrices"] == 3 * 7
    assert json.loads((folder / "config.json").read_text())["quantization_config"]["ignore"] == ["lm_head"]


def test_shared_values_take_factors_that_are_the_same_for_all_their_heads(tmp_path):
    _, checkpoint = tiny_model("llama", num_hidden_layers=1)
    scales = {}
    for name, found in aware_scales(checkpoint).items():
        if "o_proj" in name:
            by_head = found.columns.view(2, 3, 8)
            by_head[:] = by_head[:, :1].clone()
        scales[name] = found
    reader = Int8xReader(write_int8x(tmp_path / "source", checkpoint, "aware", scales))
    folds = find_folds(reader, ModelSpec.from_config(reader.config))
    assert folds.left == set()
    values = reader.scales("model.layers.0.self_attn.o_proj.weight").column_scale().view(2, 3, 8)[:, 0]
    assert torch.equal(folds.rows["model.layers.0.self_attn.v_proj.weight"], values.reshape(-1))


def test_norms_that_store_factor_minus_one_survive_bfloat16(tmp_path):
    """Gemma's factors near 0: rounded as -0.97 they would be off by 6 %."""
    _, checkpoint = tiny_model("gemma3", num_hidden_layers=1)
    norm = "model.layers.0.input_layernorm.weight"
    checkpoint.load(norm).copy_(torch.linspace(-0.999, 3.0, 48))
    source = write_int8x(tmp_path / "source", checkpoint, "aware")
    jobs.export({"model": str(source), "destination": str(tmp_path / "out")}, QUIET)
    stored, reader = load_file(tmp_path / "out" / "model.safetensors"), Int8xReader(source)
    name = "model.layers.0.self_attn.q_proj"
    scale = stored[f"{name}.weight_scale"] / reader.quantised(f"{name}.weight").row_scale()[:, None]
    columns = reader.scales(f"{name}.weight").column_scale()
    wanted = (reader.plain(norm) + 1) / columns
    as_loaded = (stored[norm].bfloat16().float() + 1) * scale[0]
    assert ((as_loaded - wanted) / wanted).abs().max() < 2**-7
    assert float(scale[0]) < 1


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 5), st.integers(1, 70), st.integers(0, 1 << 30))
def test_words_are_those_of_compressed_tensors(n_out, n_in, seed):
    q = torch.randint(-128, 128, (n_out, n_in), generator=torch.Generator().manual_seed(seed)).to(torch.int8)
    assert torch.equal(pack(q), pack_to_int32(q, 8))


def test_values_are_rounded_tile_by_tile_as_at_once(model, monkeypatch):
    monkeypatch.setattr("runtime.export.packing.TILE_VALUES", 100)
    for name in ("model.embed_tokens.weight", "model.layers.1.self_attn.o_proj.weight"):
        matrix = Int8xReader(model).quantised(name)
        assert torch.equal(bfloat16_values(matrix), matrix.dequantise().bfloat16())


def test_the_configuration_is_what_compressed_tensors_and_transformers_know(exported):
    reader, folder, _ = exported("phi3")
    config = json.loads((folder / "config.json").read_text())
    quantization = config.pop("quantization_config")
    known = QuantizationConfig.model_validate(quantization)
    scheme = known.config_groups["group_0"]
    assert (known.format, known.quantization_status.value) == ("pack-quantized", "compressed")
    assert (scheme.weights.num_bits, scheme.weights.strategy, scheme.weights.symmetric) == (
        8,
        "channel",
        True,
    )
    assert scheme.input_activations is None
    assert known.ignore[0] == "lm_head"
    assert (config.pop("dtype"), config.pop("torch_dtype")) == ("bfloat16", "bfloat16")
    assert config == {k: v for k, v in reader.config.items() if k not in ("quantization_config", "dtype")}
    for file in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "generation_config.json"):
        assert (folder / file).read_bytes() == (reader.folder / file).read_bytes()
