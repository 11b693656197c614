"""Hostile and damaged safetensors files: each ends in one sentence, never in another exception."""

import json

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from runtime.checkpoint import open_checkpoint
from runtime.errors import DecdecError

CONFIG = {"model_type": "llama", "architectures": ["LlamaForCausalLM"]}
TENSORS = {"a.weight": torch.arange(6.0).reshape(2, 3), "b.weight": torch.ones(4, dtype=torch.bfloat16)}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    save_file(TENSORS, tmp_path / "model.safetensors", metadata={"format": "pt"})
    return tmp_path


def read_all(folder):
    """What any user of a checkpoint does; returns the error's sentence or ""."""
    try:
        checkpoint = open_checkpoint(folder)
        for name in checkpoint.names():
            assert checkpoint.load(name).shape == checkpoint.shape(name)
    except DecdecError as error:
        sentence = error.sentence
    else:
        return ""
    assert sentence.isprintable()
    return sentence


def rewrite(folder, header, data=bytes(32)):
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(len(raw).to_bytes(8, "little") + raw + data)


def entry(dtype="F32", shape=(2, 4), offsets=(0, 32)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


def test_every_prefix_is_refused(folder):
    path = folder / "model.safetensors"
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        assert "model.safetensors" in read_all(folder), length


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_flipped_bits_never_escape_as_another_exception(folder, data):
    save_file(TENSORS, folder / "model.safetensors", metadata={"format": "pt"})
    damaged = bytearray((folder / "model.safetensors").read_bytes())
    for position in data.draw(st.lists(st.integers(0, len(damaged) * 8 - 1), min_size=1, max_size=4)):
        damaged[position // 8] ^= 1 << position % 8
    (folder / "model.safetensors").write_bytes(damaged)
    read_all(folder)


@pytest.mark.parametrize(
    ("header", "sentence"),
    [
        ({"a": entry(offsets=(0, 36), shape=(9,))}, "cut off: tensor a ends 4 bytes"),
        ({"a": entry(shape=(2, 3))}, "tensor a should have 24 bytes, its offsets span 32"),
        ({"a": entry(shape=(2**40, 2**40))}, "tensor a should have"),
        ({"a": entry(offsets=(32, 0))}, "offsets span -32"),
        ({"a": entry(shape=(-2, -4))}, "tensor a are malformed"),
        ({"a": entry(shape=(True, 8))}, "tensor a are malformed"),
        ({"a": entry(shape=(2.0, 4))}, "tensor a are malformed"),
        ({"a": entry(offsets=(0, 16, 32))}, "tensor a are malformed"),
        ({"a": entry(shape=[1] * 40 + [8])}, "tensor a are malformed"),
        ({"a": entry(), "b": entry()}, "overlaps"),
        ({"a": entry(shape=(4,), offsets=(16, 32))}, "leaves a hole"),
        ({"a": entry(shape=(4,), offsets=(0, 16))}, "16 bytes belong to no tensor"),
        ({"a": entry("F8_E4M3", (32,))}, "type F8_E4M3, which cannot be read"),
        ({"a": entry("Q9", (32,))}, "type Q9"),
        ({"a": entry("I32", (8,))}, "holds I32 values"),
        ({"a": 3}, "entry of tensor a is malformed"),
        ({"a": entry() | {"more": 1}}, "entry of tensor a is malformed"),
        ({"\ud800\n" * 99: 3}, r"'\ud800\n"),
        (b'{"a": 1, "a": 2}', "a key is repeated"),
        (b"[" * 100_000, "not a safetensors file"),
        (b'{"a":' * 100_000, "cannot be read"),
        (b'{"a": ' + b"9" * 5000 + b"}", "cannot be read"),
        (b"{\xff}", "cannot be read"),
    ],
)
def test_odd_headers_are_one_sentence(folder, header, sentence):
    rewrite(folder, header)
    found = read_all(folder)
    assert sentence in found
    assert len(found) < 700


def test_absurd_header_length(folder):
    (folder / "model.safetensors").write_bytes((2**63).to_bytes(8, "little") + b"{}")
    assert "header claims 9223372036854775808 bytes" in read_all(folder)


def test_git_lfs_pointers_say_what_to_do(folder):
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
    for name in ("model.safetensors", "config.json"):
        (folder / name).write_text(pointer)
        found = read_all(folder)
        assert "git lfs pull" in found
        assert name in found


def test_values_that_are_no_numbers_are_refused(folder):
    save_file({"a": torch.tensor([1.0, float("nan")])}, folder / "model.safetensors")
    assert "tensor a holds values that are not numbers" in read_all(folder)


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        (CONFIG | {"quantization_config": {"quant_method": "fp8"}}, "already quantised (fp8)"),
        (CONFIG | {"quantization_config": {"quant_method": "gptq", "bits": 4}}, "already quantised (gptq)"),
        (CONFIG | {"quantization_config": {"quant_method": "awq", "bits": 4}}, "already quantised (awq)"),
        (
            CONFIG | {"quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": True}},
            "already quantised (bitsandbytes)",
        ),
        (
            CONFIG | {"quantization_config": {"quant_method": "compressed-tensors"}},
            "already quantised (compressed-tensors)",
        ),
        (CONFIG | {"compression_config": {"quant_method": "x"}}, "already quantised (x)"),
        (CONFIG | {"quantization_config": {"load_in_8bit": True}}, "already quantised (unknown method)"),
        (CONFIG | {"quantization_config": {"quant_method": "int8x"}}, "INT8-X already"),
        (CONFIG | {"quantization": {"bits": 4}}, "already quantised (unknown method)"),
        ({"architectures": []}, "names no model_type"),
        ({"model_type": "gemma3"}, "no text_config"),
        ([1], "not an object"),
    ],
)
def test_odd_configs_are_one_sentence(folder, config, sentence):
    (folder / "config.json").write_text(json.dumps(config))
    assert sentence in read_all(folder)


def test_huge_config_is_not_read(folder):
    (folder / "config.json").write_text(" " * (5 << 20))
    assert "at most 4194304 make sense" in read_all(folder)


def test_pickled_weights_are_never_opened(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    assert "pickled" in read_all(folder)
    (folder / "pytorch_model.bin").unlink()
    assert "neither model.safetensors" in read_all(folder)
