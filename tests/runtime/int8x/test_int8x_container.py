import json

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import safe_open

from kernels.int8x import reference
from runtime.errors import DecdecError
from runtime.int8x import CodecChoice, Int8xReader, Int8xWriter
from tests.runtime.int8x.conftest import add, draw, write_model


def rounded(weight):
    return reference.quantise(weight, reference.absmax_step(weight, False))


@pytest.mark.parametrize("granularity", ["tensor", "row"])
def test_every_tensor_comes_back(tmp_path, weights, granularity):
    reader = Int8xReader(write_model(tmp_path, weights, granularity))
    assert reader.names() == list(weights)
    for name, weight in weights.items():
        assert reader.shape(name) == tuple(weight.shape)
        if weight.dim() == 1:
            assert torch.equal(reader.plain(name), weight)
            assert reader.load(name).dtype == weight.dtype
            continue
        matrix, step = reader.quantised(name), reference.absmax_step(weight, granularity == "row")
        assert torch.equal(matrix.q, reference.quantise(weight, step))
        assert torch.equal(matrix.scales.scale, step)
        assert torch.equal(reader.load(name), matrix.q.float() * step[:, None])


def test_raw_bytes_where_no_codec_would_be_smaller(model):
    tensors = json.loads((model / "config.json").read_text())["quantization_config"]["tensors"]
    codecs = {name.split(".")[-2]: entry["codec"] for name, entry in tensors.items()}
    assert codecs["down_proj"] == "raw"
    assert (codecs["q_proj"], codecs["embed_tokens"]) == ("adaptive", "bitmap")
    assert codecs["norm"] == "plain"


@pytest.mark.parametrize("shape", [(1, 1), (1, 1023), (1025, 1), (3, 700)])
@pytest.mark.parametrize("value", [0.0, -1.0])
def test_odd_shapes_and_constant_weights(tmp_path, shape, value):
    reader = Int8xReader(write_model(tmp_path, {"w": torch.full(shape, value)}))
    q = reader.quantised("w").q
    assert q.shape == shape
    assert torch.equal(q, torch.full(shape, int(127 * value), dtype=torch.int8))


@given(
    st.integers(1, 40),
    st.integers(1, 200),
    st.sampled_from([0.0, 3.0, 9.0]),
    st.sampled_from(["tensor", "row"]),
)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_shape(tmp_path, n_out, n_in, tail, granularity):
    weight = draw(n_out, n_in, n_in, tail)
    folder = tmp_path / f"{n_out}-{n_in}-{tail}-{granularity}"
    matrix = Int8xReader(write_model(folder, {"w": weight}, granularity)).quantised("w")
    assert torch.equal(matrix.q, reference.quantise(weight, matrix.scales.scale))


def test_other_levels(tmp_path):
    weight = draw(90, 60, 5)
    reader = Int8xReader(write_model(tmp_path, {"w": weight}, choice=CodecChoice("bitmap", (3, 4, 5, 8))))
    assert reader.coded_entry("w").levels == (3, 4, 5, 8)
    assert torch.equal(reader.quantised("w").q, rounded(weight))


def test_files_are_standard_safetensors_with_an_index(tmp_path, weights):
    folder = write_model(tmp_path, weights, shard_bytes=6000)
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    files = sorted(set(index["weight_map"].values()))
    assert len(files) > 1
    assert index["metadata"]["total_size"] == sum((folder / file).stat().st_size for file in files)
    for file in files:
        with safe_open(folder / file, "pt") as shard:
            assert set(shard.keys()) == {key for key, home in index["weight_map"].items() if home == file}
    assert {path.name for path in folder.iterdir()} == {*files, "config.json", "model.safetensors.index.json"}


def test_interrupted_work_goes_on_at_the_next_shard(tmp_path, weights):
    whole = write_model(tmp_path / "whole", weights, shard_bytes=6000)
    part = tmp_path / "part"
    names = list(weights)
    first = Int8xWriter(part, "tensor", shard_bytes=6000)
    add(first, weights, names[:3])
    (part / ".model-00009.safetensors.ab.part").write_bytes(b"half")
    again = Int8xWriter(part, "tensor", shard_bytes=6000)
    kept = [name for name in names if again.has(name)]
    assert names[0] in kept
    assert names[2] not in kept
    add(again, weights, [name for name in names if name not in kept])
    finished = json.loads(json.dumps(again.finish()))
    assert finished == json.loads((whole / "config.json").read_text())["quantization_config"]
    for path in whole.glob("model*"):
        assert (part / path.name).read_bytes() == path.read_bytes()
    assert not list(part.glob(".*"))


@pytest.mark.parametrize(
    "other", [{"granularity": "row"}, {"source": "another"}, {"choice": CodecChoice("bitmap", (4, 8))}]
)
def test_shards_of_another_recipe_are_made_again(tmp_path, weights, other):
    write_model(tmp_path, weights)
    writer = Int8xWriter(tmp_path, **{"granularity": "tensor", **other})
    assert not any(map(writer.has, weights))
    assert not list(tmp_path.glob("model-*.safetensors"))


def test_a_truncated_shard_is_made_again(tmp_path, weights):
    write_model(tmp_path, weights, shard_bytes=6000)
    shard = tmp_path / "model-00002.safetensors"
    shard.write_bytes(shard.read_bytes()[:-7])
    writer = Int8xWriter(tmp_path, "tensor", shard_bytes=6000)
    assert [name for name in weights if writer.has(name)] == list(weights)[:1]


@pytest.mark.parametrize(
    ("weight", "why"),
    [
        (torch.tensor([[1.0, float("nan")]]), "finite"),
        (torch.tensor([[float("inf"), 1.0]]), "finite"),
        (torch.ones(3), "float32 [3]"),
        (torch.ones(2, 2, dtype=torch.int64), "int64"),
        (torch.ones(2, 2).to(torch.float8_e4m3fn), "float8_e4m3fn"),
        (torch.ones(0, 4), "[0, 4]"),
    ],
)
def test_weights_that_cannot_be_coded_are_named(tmp_path, weight, why):
    with pytest.raises(DecdecError) as error:
        Int8xWriter(tmp_path).add("model.bad.weight", weight)
    assert "model.bad.weight" in error.value.sentence
    assert why in error.value.sentence


def test_a_name_is_stored_once(tmp_path):
    writer = Int8xWriter(tmp_path)
    writer.add("w", torch.ones(2, 2))
    with pytest.raises(DecdecError, match="already stored"):
        writer.add("w", torch.ones(2, 2))
    with pytest.raises(DecdecError, match="already stored"):
        writer.add_plain("w.scale", torch.ones(2))


def test_plain_types(tmp_path):
    with pytest.raises(DecdecError, match="bool"):
        Int8xWriter(tmp_path).add_plain("mask", torch.ones(2, dtype=torch.bool))
