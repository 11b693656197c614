"""The folder appears whole or not at all, in bounded files, and never in the place of another."""

import json
from types import SimpleNamespace

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

from runtime import store
from runtime.checkpoint.safetensors_header import read_header
from runtime.errors import DecdecError, Interrupted
from runtime.export import jobs
from runtime.export.destination import appearing
from runtime.int8x import Int8xReader
from runtime.progress import JobContext
from tests.runtime.export.conftest import QUIET, aware_scales, write_int8x
from tests.runtime.int8x.conftest import edit_config
from tests.runtime.model.tiny import tiny_model


def export(model, folder, ctx=QUIET):
    return jobs.export({"model": str(model), "destination": str(folder)}, ctx)


def beside(folder):
    return sorted(path.name for path in folder.parent.iterdir() if path.name not in ("source", "home"))


def test_what_lies_in_the_folder(model, tmp_path):
    folder = tmp_path / "deep" / "exported"
    result = export(model, folder)
    assert sorted(path.name for path in folder.iterdir()) == [
        "chat_template.jinja", "config.json", "generation_config.json", "model.safetensors",
        "tokenizer.json", "tokenizer_config.json",
    ]  # fmt: skip
    assert result["files"] == ["model.safetensors"]
    assert result["bytes"] == sum(t.nbytes for t in load_file(folder / "model.safetensors").values())
    assert beside(folder) == ["exported"]
    with safe_open(folder / "model.safetensors", "pt") as file:
        assert file.metadata() == {"format": "pt"}


def test_a_model_of_the_store_by_name(model, tmp_path, monkeypatch):
    monkeypatch.setattr(store, "find", lambda name: SimpleNamespace(path=model))
    result = jobs.export({"model": "stored", "destination": str(tmp_path / "out")}, QUIET)
    assert result["model"] == "stored"
    assert result["bf16_weights"] + result["int8_weights"] == sum(
        Int8xReader(model).coded_entry(name).weights for name in Int8xReader(model).coded_names()
    )


def test_large_models_are_divided_and_load_the_same(model, tmp_path, monkeypatch):
    whole, divided = tmp_path / "whole", tmp_path / "divided"
    export(model, whole)
    monkeypatch.setattr(jobs, "SHARD_BYTES", 16_000)
    files = export(model, divided)["files"]
    assert len(files) > 3
    assert files == [f"model-{i:05d}-of-{len(files):05d}.safetensors" for i in range(1, len(files) + 1)]
    index = json.loads((divided / "model.safetensors.index.json").read_text())
    found = {}
    for file in files:
        held = load_file(divided / file)
        assert sum(tensor.nbytes for tensor in held.values()) <= 16_000
        assert {name for name, place in index["weight_map"].items() if place == file} == set(held)
        found |= held
    expected = load_file(whole / "model.safetensors")
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], tensor) for name, tensor in expected.items())
    assert index["metadata"]["total_size"] == sum(tensor.nbytes for tensor in expected.values())
    tokens = torch.arange(9)[None]
    with torch.inference_mode():
        first, second = (
            AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)(tokens).logits
            for folder in (whole, divided)
        )
    assert torch.equal(first, second)


def test_every_tensor_begins_at_a_multiple_of_its_element_size(tmp_path):
    _, checkpoint = tiny_model("llama", vocab_size=95, intermediate_size=77)
    export(write_int8x(tmp_path / "source", checkpoint, "aware"), tmp_path / "out")
    header = read_header(tmp_path / "out" / "model.safetensors")
    sizes = {"I64": 8, "I32": 4, "F32": 4, "BF16": 2}
    assert {entry.dtype for entry in header.values()} == set(sizes)
    assert all(entry.begin % sizes[entry.dtype] == 0 for entry in header.values())


def test_an_empty_folder_is_filled(model, tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    export(model, folder)
    assert (folder / "config.json").exists()


def test_a_folder_with_anything_in_it_stays_as_it_is(model, tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "mine.txt").write_text("mine")
    with pytest.raises(DecdecError, match="is not empty, and nothing is overwritten"):
        export(model, folder)
    assert [(path.name, path.read_text()) for path in folder.iterdir()] == [("mine.txt", "mine")]
    with pytest.raises(DecdecError, match="it is a file"):
        export(model, folder / "mine.txt")
    with pytest.raises(DecdecError, match="root of a file system"):
        export(model, "/")


def test_a_stop_leaves_nothing_and_the_next_start_is_clean(model, tmp_path):
    folder, events = tmp_path / "out", []
    ctx = JobContext("export", events.append, lambda: len(events) > 3)
    ctx.emit = events.append
    monotonic = iter(range(10_000))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("runtime.progress.time.monotonic", lambda: next(monotonic))
        with pytest.raises(Interrupted):
            export(model, folder, ctx)
    assert 0 < events[-1].done < events[-1].total
    assert beside(folder) == []
    export(model, folder)
    assert (folder / "config.json").exists()


def test_what_a_killed_run_left_is_removed(model, tmp_path):
    left = tmp_path / ".out.decdec-export"
    left.mkdir()
    (left / "model-00007-of-00009.safetensors").write_bytes(b"half")
    export(model, tmp_path / "out")
    assert not left.exists()
    assert not list((tmp_path / "out").glob("model-0*"))


def test_one_export_to_a_folder_at_a_time(tmp_path):
    with (
        appearing(tmp_path / "out") as first,
        pytest.raises(DecdecError, match="already going on"),
        appearing(tmp_path / "out"),
    ):
        pass
    assert not first.exists()
    assert (tmp_path / "out").is_dir()


def test_progress_counts_every_byte(model, tmp_path):
    events = []
    result = export(model, tmp_path / "out", JobContext("export", events.append, lambda: False))
    assert {(event.step, event.unit, event.total) for event in events} == {
        ("export", "bytes", result["bytes"])
    }
    assert (events[0].done, events[-1].done) == (0, result["bytes"])


def test_a_full_disk_is_noticed_before_the_first_byte(model, tmp_path, monkeypatch):
    monkeypatch.setattr("runtime.store.space.shutil.disk_usage", lambda path: SimpleNamespace(free=1000))
    with pytest.raises(DecdecError, match=r"Not enough disk space in .*1\.0 kB are free"):
        export(model, tmp_path / "out")
    assert beside(tmp_path / "out") == []


def test_other_weights_than_those_encoded_are_refused_and_nothing_stays(model, tmp_path):
    name = "model.layers.1.mlp.up_proj.weight"
    edit_config(model, lambda config: config["tensors"][name].update(sha256="0" * 64))
    with pytest.raises(DecdecError, match=r"layers\.1\.mlp\.up_proj\.weight was refused"):
        export(model, tmp_path / "out")
    assert beside(tmp_path / "out") == []


def test_linears_of_one_input_must_agree(tmp_path):
    _, checkpoint = tiny_model("llama", num_hidden_layers=1)
    scales = aware_scales(checkpoint)
    scales["model.layers.0.mlp.up_proj.weight"].columns[3] += 1
    source = write_int8x(tmp_path / "source", checkpoint, "aware", scales)
    with pytest.raises(DecdecError, match=r"up_proj\.weight was refused: its column factors"):
        export(source, tmp_path / "out")


def test_a_configuration_that_contradicts_the_weights(model, tmp_path):
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps({**config, "intermediate_size": 96}))
    with pytest.raises(DecdecError, match=r"gate_proj\.weight was refused.*config\.json contradicts"):
        export(model, tmp_path / "out")


@pytest.mark.parametrize(
    ("args", "why"),
    [
        ({"destination": "out", "format": "gguf"}, "no export format 'gguf'"),
        ({"destination": ""}, "destination of the export is missing"),
        ({"model": "nowhere-to-be-found", "destination": "out"}, "nowhere-to-be-found"),
    ],
)
def test_wrong_arguments(args, why, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DecdecError, match=why):
        jobs.export(args, QUIET)
    assert not (tmp_path / "out").exists()


def test_a_folder_that_is_no_int8x_model(tmp_path):
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "config.json").write_text('{"model_type": "llama"}')
    with pytest.raises(DecdecError, match="is not an INT8-X model"):
        export(tmp_path / "plain", tmp_path / "out")


def test_notes_say_what_was_rounded(model, tmp_path):
    notes = export(model, tmp_path / "out")["notes"]
    assert notes[0].startswith("12 matrices are INT8, with exactly the integers")
    assert "the embedding and the head" in notes[1]
    assert "2 matrices whose input factors" in notes[2]
    assert "4 norms and the scales of 2 matrices" in notes[3]
