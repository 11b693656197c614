"""Damage at random: noticed by a checksum, or by the streams themselves where checksums were forged."""

import json
import shutil

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runtime.errors import DecdecError
from runtime.int8x import CodecChoice, Int8xReader
from tests.runtime.int8x.conftest import draw, edit_config, forge, write_model

W = "model.layers.0.mlp.up_proj.weight"
SHARED = {"deadline": None, "suppress_health_check": [HealthCheck.function_scoped_fixture]}


def load_all(folder):
    reader = Int8xReader(folder)
    return [reader.load(name) for name in reader.names()]


def copied(model):
    folder = model.parent / "damaged"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(model, folder)
    return folder


@given(st.sampled_from(["config.json", "model.safetensors.index.json", "model-00001.safetensors"]), st.data())
@settings(max_examples=250, **SHARED)
def test_a_flipped_bit_anywhere_is_noticed(model, file, data):
    content = bytearray((model / file).read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= 1 << data.draw(st.integers(0, 7))
    folder = copied(model)
    (folder / file).write_bytes(content)
    try:
        load_all(folder)
    except DecdecError:
        return
    before, after = (json.loads((place / "config.json").read_text()) for place in (model, folder))
    assert file == "config.json"
    assert after["quantization_config"] == before["quantization_config"]


@given(st.sampled_from(["model.safetensors.index.json", "model-00001.safetensors"]), st.data())
@settings(max_examples=60, **SHARED)
def test_a_truncated_file_is_noticed(model, file, data):
    content = (model / file).read_bytes()
    folder = copied(model)
    (folder / file).write_bytes(content[: data.draw(st.integers(0, len(content) - 1))])
    with pytest.raises(DecdecError):
        load_all(folder)


def flip(part, draw_number):
    octets = part.clone().view(torch.uint8).reshape(-1)
    octets[draw_number(octets.numel())] ^= 1 << draw_number(8)
    return octets.view(part.dtype)


def cut(part, draw_number):
    return part[: draw_number(part.numel())]


def grow(part, draw_number):
    return torch.cat([part, part[: 1 + draw_number(part.numel())]])


def fill(part, draw_number):
    octets = part.clone().view(torch.uint8)
    return octets.fill_([0, 1, 0x7F, 0x80, 0xFF][draw_number(5)]).view(part.dtype)


def turn(part, draw_number):
    return part.flip(0) if part.dtype != torch.uint16 else part.view(torch.int16).flip(0).view(torch.uint16)


@given(
    st.sampled_from(["plane", "short", "tail", "short_counts", "tail_counts", "widths", "order"]),
    st.sampled_from([flip, cut, grow, fill, turn]),
    st.data(),
)
@settings(max_examples=300, **SHARED)
def test_forged_adaptive_streams_are_refused_by_name_or_decode_to_a_whole_matrix(adaptive, key, change, data):
    folder = copied(adaptive)

    def mutate(streams):
        streams[key] = change(streams[key], lambda n: data.draw(st.integers(0, n - 1)))

    forge(folder, W, mutate)
    outcome = attempt(folder)
    if isinstance(outcome, DecdecError):
        assert W in outcome.sentence
    else:
        assert (outcome.q.dtype, outcome.q.shape) == (torch.int8, (70, 45))


@pytest.mark.parametrize("pair", [("plane", "short"), ("short_counts", "tail_counts")])
def test_swapped_streams_are_refused_by_name(adaptive, pair):
    one, other = pair
    forge(adaptive, W, lambda streams: streams.update({one: streams[other], other: streams[one]}))
    assert W in attempt(adaptive).sentence


def attempt(folder):
    """The matrix, or why not."""
    try:
        return Int8xReader(folder).quantised(W)
    except DecdecError as error:
        return error


@pytest.fixture
def adaptive(tmp_path):
    weight = draw(70, 45, 1, tail=6) * torch.logspace(0, 2, 70)[:, None]
    folder = write_model(tmp_path / "adaptive", {W: weight}, choice=CodecChoice("adaptive"))
    layout = Int8xReader(folder).coded_entry(W).layout()
    assert all(part.shape[0] > 1 for name, part in layout.items() if name != "scale")
    return folder


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"plane": -1}, "impossible"),
        ({"tail": 2**31}, "impossible"),
        ({"plane": 5}, "instead of"),
        ({"counts": "int64"}, "int64"),
        ({"counts": "int32"}, "instead of"),
        ({"shape": [69, 45]}, "instead of"),
        ({"shape": [70, 44]}, "its groups"),
    ],
)
def test_entries_of_adaptive_planes_that_are_wrong(adaptive, fields, why):
    edit_config(adaptive, lambda config: config["tensors"][W].update(fields))
    with pytest.raises(DecdecError, match=why) as error:
        Int8xReader(adaptive).quantised(W)
    assert W in error.value.sentence
