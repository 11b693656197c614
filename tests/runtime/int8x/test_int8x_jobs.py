from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file, save_file

from kernels.int8x import reference
from runtime import store
from runtime.errors import DecdecError, Interrupted
from runtime.int8x import Int8xReader, fingerprint, jobs
from runtime.int8x.encoding import TABLES
from runtime.progress import JobContext
from tests.runtime.int8x.conftest import PAPER, edit_config

QUIET = JobContext.silent()


def rounded(weight, per_row=False):
    return reference.quantise(weight, reference.absmax_step(weight, per_row))


def replace_weight(source, name, change):
    weights = load_file(source / "model.safetensors")
    change(weights[name])
    save_file(weights, source / "model.safetensors")


def test_encode_makes_a_whole_model(source, coded):
    reader = Int8xReader(coded)
    assert reader.config["hidden_size"] == 48
    assert (coded / "tokenizer.json").exists()
    for name, weight in load_file(source / "model.safetensors").items():
        if weight.dim() == 2:
            assert torch.equal(reader.quantised(name).q, rounded(weight, name in TABLES))
        else:
            assert torch.equal(reader.plain(name), weight)


@pytest.mark.parametrize("against", ["source", "recorded hashes"])
def test_verify_says_lossless_with_exactly_the_promised_fields(source, coded, against):
    args = {"model": str(coded)} | ({"source": str(source)} if against == "source" else {})
    result = jobs.verify(args, QUIET)
    assert list(result) == [
        "lossless",
        "tensors",
        "weights",
        "mismatches",
        "bits_per_weight",
        "entropy_bits_per_weight",
        "huffman_bits_per_weight",
    ]
    assert (result["lossless"], result["mismatches"]) == (True, 0)
    assert (result["tensors"], result["weights"]) == (3, 130 * 48 + 64 * 48 + 16 * 40)
    assert result["entropy_bits_per_weight"] <= result["huffman_bits_per_weight"] <= 8
    assert result["bits_per_weight"] < 8.5


def test_verify_counts_every_weight_that_differs_from_the_source(source, coded):
    def change(weight):
        weight.view(-1)[:5] = -weight.view(-1)[5:10].sign()

    before = load_file(source / "model.safetensors")["model.embed_tokens.weight"]
    replace_weight(source, "model.embed_tokens.weight", change)
    after = load_file(source / "model.safetensors")["model.embed_tokens.weight"]
    expected = (rounded(before) != rounded(after)).sum()
    result = jobs.verify({"model": str(coded), "source": str(source)}, QUIET)
    assert (result["lossless"], result["mismatches"]) == (False, int(expected))


def test_verify_notices_a_different_scale(source, coded):
    replace_weight(source, "model.layers.0.mlp.down_proj.weight", lambda weight: weight.mul_(2))
    result = jobs.verify({"model": str(coded), "source": str(source)}, QUIET)
    assert result["mismatches"] == 16 * 40


def test_verify_without_source_trusts_the_hash_taken_before_coding(coded):
    name = "model.layers.0.self_attn.q_proj.weight"
    edit_config(coded, lambda config: config["tensors"][name].update(sha256="0" * 64))
    result = jobs.verify({"model": str(coded)}, QUIET)
    assert (result["lossless"], result["mismatches"]) == (False, 64 * 48)


def test_verify_uses_the_recorded_source_of_a_stored_model_only_while_it_is_unchanged(
    source, coded, monkeypatch
):
    record = SimpleNamespace(path=coded, record={"source_path": str(source)})
    monkeypatch.setattr(store, "find", lambda name: record)
    assert Int8xReader(coded).config["quantization_config"]["source"] == fingerprint(source)
    assert jobs.verify({"model": "stored"}, QUIET)["lossless"]
    opened = []
    monkeypatch.setattr("runtime.int8x.verifying.open_checkpoint", opened.append)
    replace_weight(source, "model.norm.weight", lambda weight: weight.mul_(2))
    assert jobs.verify({"model": "stored"}, QUIET)["lossless"]
    assert opened == []


def test_an_interrupted_encode_goes_on(source, tmp_path):
    folder = tmp_path / "coded"
    calls = iter([False, False, True])
    ctx = JobContext("encode", lambda event: None, lambda: next(calls, True))
    args = {"source": str(source), "destination": str(folder), "quality": PAPER, "scale": "row"}
    with pytest.raises(Interrupted):
        jobs.encode(args, ctx)
    assert not (folder / "config.json").exists()
    jobs.encode(args, QUIET)
    assert jobs.verify({"model": str(folder), "source": str(source)}, QUIET)["lossless"]


def test_progress_counts_all_weights(source, tmp_path):
    events = []
    ctx = JobContext("encode", events.append, lambda: False)
    jobs.encode({"source": str(source), "destination": str(tmp_path / "coded"), "quality": PAPER}, ctx)
    assert (events[-1].step, events[-1].unit) == ("encode", "weights")
    assert events[-1].done == events[-1].total == 130 * 48 + 64 * 48 + 16 * 40 + 96


@pytest.mark.parametrize(
    ("args", "why"),
    [
        ({"destination": "x"}, "source"),
        ({"source": "x"}, "destination"),
        ({"source": "x", "destination": "y", "quality": {"preset": "best"}}, "best"),
        ({"source": "/nowhere/model", "destination": "y"}, "nowhere"),
    ],
)
def test_wrong_arguments(args, why, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DecdecError, match=why):
        jobs.encode(args, QUIET)


def test_a_folder_with_a_model_is_not_overwritten(source, coded):
    with pytest.raises(DecdecError, match="already holds a model"):
        jobs.encode({"source": str(source), "destination": str(coded), "quality": PAPER}, QUIET)
    with pytest.raises(DecdecError, match="already holds a model"):
        jobs.encode({"source": str(coded), "destination": str(source), "quality": PAPER}, QUIET)


def test_bad_weights_are_named(source, tmp_path):
    replace_weight(source, "model.embed_tokens.weight", lambda weight: weight.view(-1)[7].fill_(float("nan")))
    with pytest.raises(DecdecError, match=r"model\.embed_tokens\.weight"):
        jobs.encode({"source": str(source), "destination": str(tmp_path / "out"), "quality": PAPER}, QUIET)
