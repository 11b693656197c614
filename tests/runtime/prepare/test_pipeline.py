"""Preparing a real (tiny) model: whole, resumable, and faithful to the source's own weights."""

import shutil

import pytest
import torch
from safetensors.torch import load_file

from kernels.dec import GroupCodes, TableCodes, dequantise, quantise_residual, quantise_rtn
from kernels.int8x import Quantised
from runtime import devices, lowbit, store
from runtime.checkpoint import open_checkpoint
from runtime.engine.load import load_engine
from runtime.errors import DecdecError, Interrupted
from runtime.int8x import Int8xReader
from runtime.model import weights
from runtime.model.build import build_dense
from runtime.model.spec import ModelSpec
from runtime.prepare import pipeline
from runtime.prepare.pipeline import prepare
from runtime.prepare.sizes import head_bytes
from runtime.progress import JobContext
from runtime.protocol import Load, Prepare
from runtime.protocol.quality import Quality
from runtime.quantise.allocation import base_bytes
from runtime.rate import rounder
from runtime.store import ModelRecord
from tests.runtime.checkpoint.packed_writer import (
    GPTQ_SETTINGS,
    gptq_tensors,
    round_to_groups,
    write_packed,
)

SILENT = JobContext.silent()

FINE, PAPER = Quality(preset="fine"), Quality(preset="paper")


def both(source):
    return Prepare(str(source), bases=("rtn4", "rtn3"))


def prepared(source, **changes) -> ModelRecord:
    return prepare(Prepare(str(source), **({"bases": ("rtn4", "rtn3")} | changes)), SILENT)


def same_tensors(one, other):
    a, b = load_file(one), load_file(other)
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def test_a_folder_becomes_a_whole_model(home, source):
    record = prepared(source)
    assert [r.name for r in store.models()] == ["tiny"]
    assert set(record.record["bases"]) == {"rtn4", "rtn3"}
    assert 2 < record.bits_per_weight < 16
    store.verify_files(record, quick=False)
    reader = Int8xReader(record.path)
    assert set(reader.names()) == set(open_checkpoint(source).names())


def test_int8_is_the_paper_s_rounding_of_the_source(home, source):
    record, checkpoint = prepared(source, quality=PAPER), open_checkpoint(source)
    reader = Int8xReader(record.path)
    for name in reader.coded_names():
        q, scale = reader.quantised(name).row_scaled()
        weight = checkpoint.load(name).float()
        is_table = name in ("model.embed_tokens.weight", "lm_head.weight")
        largest = weight.abs().amax(1) if is_table else weight.abs().max()[None]
        assert torch.allclose(scale, (largest / 127).expand(len(q)))
        steps = scale[:, None]
        assert ((q.float() * steps - weight).abs() <= steps * 0.5001).all()


def test_base_plus_residual_comes_from_the_source_not_from_its_int8(home, source):
    record, checkpoint = prepared(source), open_checkpoint(source)
    spec = ModelSpec.from_config(checkpoint.config)
    stored = lowbit.read_block(record.path, "rtn3", 1)
    for kind, low in stored.items():
        weight = weights.fused_weight(checkpoint, spec, 1, kind)
        base = quantise_rtn(weight, 3)
        assert torch.equal(low.base.codes, base.codes)
        assert torch.equal(low.correction.codes, quantise_residual(weight - dequantise(base)).codes)


@pytest.mark.parametrize("stop_after", [1, 4, 9, 14])
def test_an_interrupted_run_lists_nothing_and_continues(home, source, stop_after):
    calls = 0

    def cancelled():
        nonlocal calls
        calls += 1
        return calls > stop_after

    with pytest.raises(Interrupted):
        prepare(both(source), JobContext("prepare", lambda e: None, cancelled))
    assert store.models() == []
    resumed = prepared(source)
    store.verify_files(resumed, quick=False)
    shutil.move(resumed.path, home / "resumed")
    fresh = prepared(source)
    for path in sorted(p for p in fresh.path.rglob("*.safetensors")):
        assert same_tensors(path, home / "resumed" / path.relative_to(fresh.path))


def test_a_whole_model_is_not_made_again(home, source):
    first = prepared(source)
    times = {p: p.stat().st_mtime_ns for p in first.path.rglob("*")}
    assert prepared(source) == first
    assert {p: p.stat().st_mtime_ns for p in first.path.rglob("*")} == times


def test_scales_per_row_are_kept_until_others_are_asked_for(home, source):
    first = prepared(source, quality=FINE)
    assert Int8xReader(first.path).coded_entry("model.layers.0.mlp.up_proj.weight").granularity == "row"
    assert prepared(source) == first
    again = prepared(source, quality=PAPER)
    assert Int8xReader(again.path).coded_entry("model.layers.0.mlp.up_proj.weight").granularity == "tensor"


def test_a_repair_keeps_the_scales(home, source):
    first = prepared(source, quality=FINE)
    lowbit.block_path(first.path, "rtn4", 0).unlink()
    again = prepared(source)
    assert again.record["quality"]["preset"] == "fine"
    assert lowbit.block_path(again.path, "rtn4", 0).exists()


def test_a_model_of_another_format_is_made_again(home, source, monkeypatch):
    first = prepared(source)
    monkeypatch.setitem(pipeline.FORMATS, "lowbit", 99)
    again = prepared(source)
    assert again.record["formats"]["lowbit"] == 99
    assert first.record["formats"]["lowbit"] != 99


def test_a_missing_base_is_added(home, source):
    assert prepared(source, bases=("rtn4",)).record["bases"] == ["rtn4"]
    with pytest.raises(DecdecError, match="no rtn3 base"):
        load_engine(Load("tiny", "rtn3"), SILENT)
    assert set(prepared(source, bases=("rtn4", "rtn3")).record["bases"]) == {"rtn4", "rtn3"}


def test_a_damaged_file_is_made_again(home, source):
    record = prepared(source)
    victim = lowbit.block_path(record.path, "rtn4", 2)
    shutil.copy(victim, home / "good")
    victim.write_bytes(victim.read_bytes()[:-8] + b"damaged!")
    with pytest.raises(DecdecError, match="block-0002"):
        store.verify_files(record, quick=False)
    again = prepared(source)
    assert same_tensors(lowbit.block_path(again.path, "rtn4", 2), home / "good")


@pytest.mark.parametrize("base", ["rtn4", "int8"])
def test_a_prepared_model_answers_like_its_source(home, source, base):
    prepared(source, quality=FINE)
    loaded = load_engine(Load("tiny", base, 64), SILENT)
    tokens = list(range(40, 60))
    with torch.inference_mode():
        dense = build_dense(open_checkpoint(source)).forward(torch.tensor(tokens))[-1]
    logits = loaded.engine.prefill(tokens, lambda: None)
    assert float((logits - dense).norm() / dense.norm()) < 0.1
    assert loaded.loaded.lossless == (base == "rtn4")
    assert loaded.loaded.device.startswith("CPU")
    assert loaded.loaded.untuned_reason


def test_an_uncorrected_prompt_is_what_the_base_alone_computes(home, source):
    prepared(source, quality=FINE)
    tokens, none = list(range(40, 60)), lambda: None
    corrected = load_engine(Load("tiny", "rtn4", 64), SILENT)
    plain = load_engine(Load("tiny", "rtn4", 64, prompt_correction=False), SILENT)
    for token in tokens:
        base = corrected.engine.decode(token)
    corrected.engine.truncate(0)
    errors = [
        float((found.engine.prefill(tokens, none) - base).norm() / base.norm())
        for found in (plain, corrected)
    ]
    assert errors[0] < 0.02 < 0.05 < errors[1]
    assert plain.loaded.note == ""


def test_a_narrow_cache_is_for_a_gpu_and_the_model_says_so(home, source):
    prepared(source)
    assert "32 bits" in load_engine(Load("tiny", "rtn4", 64, kv_bits=8), SILENT).loaded.note


def test_a_gpu_that_is_not_used_is_told_when_the_model_loads(home, source, monkeypatch):
    prepared(source)
    monkeypatch.setattr(devices, "why_cpu", lambda: "its fan is too loud")
    loaded = load_engine(Load("tiny", "rtn4", 64), SILENT).loaded
    assert loaded.note == "The GPU is not used: its fan is too loud."
    assert loaded.device.startswith("CPU")


def test_an_impossible_context_is_refused_with_the_limit(home, source):
    prepared(source)
    with pytest.raises(DecdecError, match="at most 128"):
        load_engine(Load("tiny", "rtn4", 100_000), SILENT)


@pytest.mark.parametrize(
    ("step", "gone"),
    [
        ("encode", "."),
        ("quantise", "."),
        ("quantise", "model-00001.safetensors"),
        ("quantise", "tokenizer.json"),
        ("quantise", "base-rtn4"),
        ("hash", "."),
    ],
)
def test_what_is_removed_while_a_model_is_made_is_told_and_nothing_is_listed(home, source, step, gone):
    lost = home / "models" / ".staging-tiny" / gone

    class Removing(JobContext):
        def progress(self, at, done, *rest):
            if at == step and done and lost.exists():
                shutil.rmtree(lost) if lost.is_dir() else lost.unlink()
            return super().progress(at, done, *rest)

    with pytest.raises(DecdecError, match=r"removed meanwhile|does not exist"):
        prepare(both(source), Removing("prepare", lambda event: None, lambda: False))
    assert store.models() == []
    store.verify_files(prepared(source), quick=False)
    load_engine(Load("tiny", "rtn3"), SILENT)


def test_a_full_disk_is_noticed_before_the_first_byte(home, source, monkeypatch):
    monkeypatch.setattr("runtime.prepare.pipeline.staging_bytes", lambda *a: 1 << 60)
    with pytest.raises(DecdecError, match="DECDEC_HOME"):
        prepared(source)
    assert store.models() == []


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("tokenizer.json", '{"model": {}}', "tokenizer or chat template cannot be used"),
        ("chat_template.jinja", "{% bad %}", "tokenizer or chat template cannot be used"),
        ("config.json", '{"model_type": "mamba"}', "mamba"),
    ],
)
def test_what_cannot_chat_is_refused_before_encoding_and_leaves_nothing(home, source, file, content, words):
    (source / file).write_text(content)
    with pytest.raises(DecdecError, match=words) as caught:
        prepared(source)
    assert str(home) not in caught.value.sentence
    assert list((home / "models").iterdir()) == []


def test_continuing_needs_room_only_for_what_is_missing(home, source, monkeypatch):
    asked = []
    monkeypatch.setattr(store, "require_space", lambda folder, needed: asked.append(needed))
    stops = (step for step in [False] * 12 + [True])
    with pytest.raises(Interrupted):
        prepare(both(source), JobContext("prepare", lambda event: None, lambda: next(stops)))
    made = [p for p in (home / "models").rglob("*") if p.is_file() and p.name != ".identity.json"]
    there = sum(p.stat().st_size for p in made)
    prepared(source)
    assert there > 0
    assert asked[0] - asked[1] == there


@pytest.mark.parametrize(
    "name", ["model-00001.safetensors", "base-rtn3/block-0001.safetensors", "tokenizer.json", "config.json"]
)
def test_pulling_again_repairs_a_flipped_bit(home, source, name):
    path = prepared(source).path / name
    whole = path.read_bytes()
    damaged = whole[:-40] + bytes([whole[-40] ^ 1]) + whole[-39:]
    path.write_bytes(damaged)
    store.verify_files(prepared(source), quick=False)
    assert path.read_bytes() != damaged


def test_a_repair_keeps_the_bases_that_nobody_asks_for(home, source):
    record = prepared(source)
    victim = lowbit.block_path(record.path, "rtn3", 1)
    whole = victim.read_bytes()
    victim.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    again = prepared(source, bases=("rtn4",))
    assert set(again.record["bases"]) == {"rtn4", "rtn3"}
    assert victim.read_bytes() == whole


def test_a_model_is_not_made_again_from_a_path_that_is_gone(home, source):
    record = prepared(source, name="mine")
    shutil.rmtree(source)
    assert prepared(source, name="mine") == record, "a whole one needs it no more"
    lowbit.block_path(record.path, "rtn4", 0).unlink()
    with pytest.raises(DecdecError, match=f"again: {source}, .* is not there. Put it back"):
        prepared(source, name="mine")


def test_sensitivities_of_an_interrupted_run_are_used_again(home, source, monkeypatch):
    def interrupted(*args):
        raise Interrupted

    with monkeypatch.context() as patch:
        patch.setattr(pipeline, "encode_tensors", interrupted)
        with pytest.raises(Interrupted):
            prepared(source)
    monkeypatch.setattr(rounder.sensitivity, "measure", lambda *args: pytest.fail("measured again"))
    assert prepared(source).record["quality"]["preset"] == "balanced"


@pytest.mark.parametrize(
    ("base", "forms"),
    [
        ("awq3", {GroupCodes}),
        ("squeezellm4", {TableCodes}),
        ("int8x4", {Quantised}),
        ("awq3.5", {GroupCodes}),
    ],
)
def test_every_method_gives_blocks_that_load(home, source, base, forms):
    record = prepared(source, bases=(base,))
    blocks = [
        lowbit.read_block(record.path, base, index) for index in range(len(list(base_files(record, base))))
    ]
    assert {type(low.base) for block in blocks for low in block.values()} == forms
    if base == "awq3.5":
        bits = [block["o"].base.bits for block in blocks]
        assert sorted(bits) == [3] * (len(bits) // 2) + [4] * (len(bits) - len(bits) // 2)
    assert load_engine(Load("tiny", base, 64), SILENT).loaded.base == base


def base_files(record, base):
    return (record.path / f"base-{base}").glob("block-*.safetensors")


def test_a_base_is_added_and_nothing_else_is_made_again(home, source):
    first = prepared(source, bases=("rtn4",))
    coded = {p.name: p.stat().st_mtime_ns for p in first.path.glob("*.safetensors")}
    second = prepared(source, bases=("awq4",))
    assert set(second.record["bases"]) == {"rtn4", "awq4"}
    assert {p.name: p.stat().st_mtime_ns for p in second.path.glob("*.safetensors")} == coded


def test_bits_are_chosen_for_a_size(home, source):
    spec = ModelSpec.from_config(open_checkpoint(source).config)
    smallest = base_bytes(spec, "rtn", 3) + head_bytes(spec)
    assert prepared(source, bases=("rtn",), fit=smallest).record["bases"] == ["rtn3"]
    largest = base_bytes(spec, "rtn", 4) + head_bytes(spec)
    assert prepared(source, bases=("rtn",), fit=largest - 1).record["bases"] != ["rtn4"]
    with pytest.raises(DecdecError, match="does not fit"):
        prepared(source, bases=("rtn",), fit=smallest - 1)


def test_continuations_are_asked_for_once_and_kept(home, source):
    first = prepared(source, bases=("rtn4",))
    assert first.record["texts"] == "prompts"
    again = prepared(source, bases=("rtn4",), continuations=True)
    assert again.record["texts"] == "continuations"
    assert (again.path / "calibration" / "continuations.safetensors").is_file()
    assert prepared(source, bases=("rtn4",)) == again


def test_a_packed_base_follows_the_checkpoint_it_is_read_from(home, source, tmp_path):
    """Two checkpoints of other roundings: the second is not taken for the first."""
    first = prepared(source, bases=("packed4",), base_from=str(packed_copy(source, tmp_path / "a", 32)))
    codes = lowbit.read_block(first.path, "packed4", 0)["o"].base.codes
    second = prepared(source, bases=("packed4",), base_from=str(packed_copy(source, tmp_path / "b", 64)))
    assert not torch.equal(lowbit.read_block(second.path, "packed4", 0)["o"].base.codes, codes)
    assert load_engine(Load("tiny", "packed4", 64), SILENT).loaded.base == "packed4"
    shutil.rmtree(home / "models")
    with pytest.raises(DecdecError, match="base-from"):
        prepared(source, bases=("packed4",))


def packed_copy(source, folder, group):
    """The model as a GPTQ checkpoint."""
    checkpoint = open_checkpoint(source)
    linears = set(weights.linear_names(ModelSpec.from_config(checkpoint.config)))
    coded = {
        name.removesuffix(".weight"): gptq_tensors(round_to_groups(checkpoint.load(name).float(), group))
        for name in linears
    }
    plain = {name: checkpoint.load(name) for name in checkpoint.names() if name not in linears}
    return write_packed(folder, coded, GPTQ_SETTINGS | {"group_size": group}, plain, checkpoint.config)
