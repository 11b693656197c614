"""Scales with factors for rows and columns, and weights that were rounded elsewhere."""

import json

import pytest
import torch
from safetensors.torch import save_file

from kernels.int8x import Scales, factors, quantise
from kernels.int8x.economical import round_economically
from runtime.errors import DecdecError
from runtime.int8x import CodecChoice, Int8xReader, Int8xWriter, jobs
from runtime.progress import JobContext
from tests.runtime.int8x.conftest import draw, edit_config

QUIET = JobContext.silent()
W = "model.layers.0.mlp.up_proj.weight"


def codes(n, seed):
    return torch.randint(110, 146, (n,), generator=torch.Generator().manual_seed(seed)).to(torch.uint8)


WEIGHT = draw(64, 96, 1, tail=3).bfloat16()
SCALES = {
    "both": Scales("aware", torch.tensor([0.02]), codes(64, 2), codes(96, 3)),
    "rows": Scales("aware", torch.tensor([0.02]), codes(64, 2)),
    "columns": Scales("aware", torch.tensor([0.02]), columns=codes(96, 3)),
    "neither": Scales("aware", torch.tensor([0.02])),
}


def write(folder, fill, **options):
    writer = Int8xWriter(folder, **options)
    fill(writer)
    config = {"model_type": "llama", "quantization_config": writer.finish()}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def source_of(folder, weight):
    folder.mkdir()
    save_file({W: weight}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps({"model_type": "llama"}))
    return str(folder)


@pytest.mark.parametrize("which", SCALES)
@pytest.mark.parametrize("codec", ["adaptive", "bitmap", "raw"])
def test_factors_come_back_and_count_as_stored_bits(tmp_path, which, codec):
    scales = SCALES[which]
    folder = write(tmp_path, lambda w: w.add(W, WEIGHT, scales), choice=CodecChoice(codec))
    matrix, entry = Int8xReader(folder).quantised(W), Int8xReader(folder).coded_entry(W)
    assert matrix.scales.same_as(scales)
    assert torch.equal(matrix.q, quantise(WEIGHT, scales))
    assert entry.rounding == "nearest"
    plain = write(
        tmp_path / "plain",
        lambda w: w.add_quantised(W, matrix.q, SCALES["neither"]),
        choice=CodecChoice(codec),
    )
    extra = entry.stored_bits - Int8xReader(plain).coded_entry(W).stored_bits
    assert extra == 8 * sum({"rows": 64, "columns": 96}[name] for name in entry.factors)


def test_load_gives_the_values(tmp_path):
    scales = SCALES["both"]
    folder = write(tmp_path, lambda w: w.add(W, WEIGHT, scales))
    q = quantise(WEIGHT, scales).double()
    rows, columns = factors(scales.rows).double(), factors(scales.columns).double()
    exact = q * scales.scale.double() * rows[:, None] / columns
    torch.testing.assert_close(Int8xReader(folder).load(W), exact.float(), rtol=1e-6, atol=0)


def test_verify_rounds_the_source_again_with_the_stored_scales(tmp_path):
    folder = write(tmp_path / "coded", lambda w: w.add(W, WEIGHT, SCALES["both"]))
    args = {"model": str(folder), "source": source_of(tmp_path / "source", WEIGHT)}
    assert jobs.verify(args, QUIET)["lossless"]
    other = source_of(tmp_path / "other", -WEIGHT)
    expected = (quantise(WEIGHT, SCALES["both"]) != quantise(-WEIGHT, SCALES["both"])).sum()
    assert jobs.verify({**args, "source": other}, QUIET)["mismatches"] == expected


def test_economical_rounding_is_repeated_by_verify(tmp_path):
    scales = SCALES["both"]
    q = round_economically(WEIGHT, scales)
    assert not torch.equal(q, quantise(WEIGHT, scales))
    folder = write(tmp_path / "coded", lambda w: w.add_quantised(W, q, scales))
    assert Int8xReader(folder).coded_entry(W).rounding == "economical"
    args = {"model": str(folder), "source": source_of(tmp_path / "source", WEIGHT)}
    assert jobs.verify(args, QUIET)["lossless"]
    changed = write(tmp_path / "changed", lambda w: w.add_quantised(W, -q, scales))
    assert jobs.verify({**args, "model": str(changed)}, QUIET)["mismatches"] == (q != 0).sum()


def test_granularities_of_one_writer_may_differ(tmp_path):
    def fill(writer):
        writer.add("a", WEIGHT)
        writer.add("b", WEIGHT, "row")
        writer.add("c", WEIGHT, SCALES["columns"])

    reader = Int8xReader(write(tmp_path, fill))
    assert [reader.coded_entry(name).granularity for name in "abc"] == ["tensor", "row", "aware"]


def test_resuming_keeps_aware_tensors(tmp_path):
    write(tmp_path, lambda w: w.add(W, WEIGHT, SCALES["both"]))
    assert Int8xWriter(tmp_path).has(W)


@pytest.mark.parametrize(
    ("q", "scales", "why"),
    [
        (torch.zeros(4, 4), SCALES["neither"], "int8 matrix"),
        (torch.zeros(4, dtype=torch.int8), SCALES["neither"], "int8 matrix"),
        (torch.zeros(4, 4, dtype=torch.int8), SCALES["rows"], "rows has 64"),
    ],
)
def test_rounded_weights_that_do_not_fit_are_named(tmp_path, q, scales, why):
    with pytest.raises(DecdecError, match=why) as error:
        Int8xWriter(tmp_path).add_quantised(W, q, scales)
    assert W in error.value.sentence


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"factors": ["rows", "depth"]}, "depth"),
        ({"granularity": "tensor"}, "factors"),
        ({"factors": ["rows"]}, "checksum"),
        ({"rounding": "random"}, "random"),
    ],
)
def test_entries_that_contradict_themselves(tmp_path, fields, why):
    folder = write(tmp_path, lambda w: w.add(W, WEIGHT, SCALES["both"]))
    edit_config(folder, lambda config: config["tensors"][W].update(fields))
    with pytest.raises(DecdecError, match=why) as error:
        Int8xReader(folder).quantised(W)
    assert W in error.value.sentence
