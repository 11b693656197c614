"""Whatever is wrong with a container, one sentence says which tensor, and nothing is decoded."""

import json

import pytest
import torch

from runtime.errors import DecdecError
from runtime.int8x import Int8xReader
from tests.runtime.int8x.conftest import edit_config, edit_streams, forge

Q = "model.layers.0.self_attn.q_proj.weight"


def refused(folder, *parts, name=Q):
    with pytest.raises(DecdecError) as error:
        Int8xReader(folder).quantised(name)
    for part in parts:
        assert part in error.value.sentence


def set_field(name, **fields):
    return lambda config: config["tensors"][name].update(fields)


@pytest.mark.parametrize("version", [0, 1, "2", None, True, 2.5])
def test_other_format_versions(model, version):
    edit_config(model, lambda config: config.update(format_version=version))
    refused(model, "format version", repr(version))


@pytest.mark.parametrize(("version", "updating_helps"), [(1, False), (3, True)])
def test_only_a_newer_format_asks_for_an_update(model, version, updating_helps):
    edit_config(model, lambda config: config.update(format_version=version))
    with pytest.raises(DecdecError, match=r"[Mm]ake the model again") as error:
        Int8xReader(model)
    assert ("pdate decdec-chat" in error.value.sentence) == updating_helps


def test_not_int8x(model, tmp_path):
    edit_config(model, lambda config: config.update(quant_method="awq"))
    refused(model, "not an INT8-X model")
    refused(tmp_path / "nowhere", "config.json")


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"codec": "zip"}, "zip"),
        ({"shape": [64, 47]}, "do not add up"),
        ({"shape": [48, 64, 1]}, "shape"),
        ({"shape": [-64, -48]}, "impossible"),
        ({"shape": [1 << 40, 1 << 40]}, "impossible"),
        ({"levels": [3, 5, 9]}, "level widths"),
        ({"levels": [8]}, "levels"),
        ({"levels": [4, 5, 8]}, "instead of"),
        ({"counts": [3000, 72]}, "counts"),
        ({"counts": [-1, 1, 3072]}, "counts"),
        ({"granularity": "column"}, "column"),
        ({"granularity": "row"}, "instead of"),
        ({"surprise": 1}, "surprise"),
        ({"crc32": 12345}, "checksum"),
    ],
)
def test_wrong_entries(bitmap_model, fields, why):
    edit_config(bitmap_model, set_field(Q, **fields))
    refused(bitmap_model, Q, why)


def test_counts_that_do_not_match_the_streams(bitmap_model):
    def move_one(config):
        counts = config["tensors"][Q]["counts"]
        config["tensors"][Q]["counts"] = [counts[0] - 32, counts[1] + 32, counts[2]]

    edit_config(bitmap_model, move_one)
    refused(bitmap_model, Q, "instead of")


@pytest.mark.parametrize("key", ["b1", "b2", "b1_blk", "b2_blk"])
def test_bitmaps_and_counts_that_disagree(bitmap_model, key):
    def flip(streams):
        streams[key][1] ^= 4

    forge(bitmap_model, Q, flip)
    refused(bitmap_model, Q, "bitmap")


def test_wild_block_counts_never_lead_out_of_bounds(bitmap_model):
    def shift(streams):
        streams["b1_blk"][1:] = 2**31 - 1

    forge(bitmap_model, Q, shift)
    refused(bitmap_model, Q, "block counts of bitmap 1")


@pytest.mark.parametrize("key", ["scale", "b1", "b2_blk", "l1", "l3"])
def test_missing_short_and_mistyped_streams(bitmap_model, key):
    edit_streams(
        bitmap_model, lambda streams: streams.update({f"{Q}.{key}": streams[f"{Q}.{key}"][:-1].clone()})
    )
    refused(bitmap_model, Q, key, "instead of")
    edit_streams(
        bitmap_model, lambda streams: streams.update({f"{Q}.{key}": torch.zeros(3, dtype=torch.int64)})
    )
    refused(bitmap_model, Q, key, "I64")
    edit_streams(bitmap_model, lambda streams: streams.pop(f"{Q}.{key}"))
    refused(bitmap_model, Q)


def test_truncated_missing_and_foreign_files(model):
    path = model / "model-00001.safetensors"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    refused(model, Q, path.name)
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n")
    refused(model, Q, path.name)
    path.unlink()
    refused(model, Q, path.name)


@pytest.mark.parametrize("file", ["../secret.safetensors", "/etc/passwd", "model.bin", 7])
def test_the_index_cannot_lead_out_of_the_folder(bitmap_model, file):
    index = {"weight_map": {f"{Q}.b1": file}}
    (bitmap_model / "model.safetensors.index.json").write_text(json.dumps(index))
    refused(bitmap_model, "not the name of a file")


def test_wrong_kind_of_access(model):
    reader = Int8xReader(model)
    for read, name in [(reader.plain, Q), (reader.quantised, "model.norm.weight"), (reader.load, "nope")]:
        with pytest.raises(DecdecError, match=name.replace(".", r"\.")):
            read(name)
