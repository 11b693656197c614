"""Hugging Face folders: values, shards, the text part of a multimodal model, tokenizer files."""

import json

import pytest
import torch
from safetensors.torch import save_file

from runtime.checkpoint import open_checkpoint
from runtime.errors import DecdecError
from tests.runtime.checkpoint.tiny_gguf import tiny_model

INDEX = "model.safetensors.index.json"
TOKENIZER = {"version": "1.0", "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}}


def write(folder, name, value):
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(value if isinstance(value, str) else json.dumps(value))


@pytest.mark.parametrize("shard_size", ["1GB", "100KB"])
def test_saved_model_comes_back(tmp_path, shard_size):
    model = tiny_model("llama").to(torch.bfloat16)
    model.save_pretrained(tmp_path, max_shard_size=shard_size)
    assert (tmp_path / INDEX).exists() == (shard_size == "100KB")
    checkpoint = open_checkpoint(tmp_path)
    expected = {name: values for name, values in model.state_dict().items() if name != "lm_head.weight"}
    assert set(checkpoint.names()) == set(expected)
    for name, values in expected.items():
        assert checkpoint.shape(name) == values.shape
        assert torch.equal(checkpoint.load(name), values)
    assert checkpoint.config["hidden_size"] == model.config.hidden_size
    with pytest.raises(DecdecError, match="no tensor lm_head"):
        checkpoint.load("lm_head.weight")


@pytest.fixture
def sharded(tmp_path):
    write(tmp_path, "config.json", {"model_type": "llama"})
    for i in (1, 2):
        save_file({f"t{i}": torch.full((2,), float(i))}, tmp_path / f"part-{i}.safetensors")
    write(tmp_path, INDEX, {"weight_map": {"t1": "part-1.safetensors", "t2": "part-2.safetensors"}})
    return tmp_path


def test_shards_by_index(sharded):
    checkpoint = open_checkpoint(sharded)
    assert checkpoint.names() == ["t1", "t2"]
    assert checkpoint.load("t2").tolist() == [2.0, 2.0]


def test_missing_shard_is_named(sharded):
    (sharded / "part-2.safetensors").unlink()
    with pytest.raises(DecdecError, match=r"part-2\.safetensors is missing \(1 of 2 files\)"):
        open_checkpoint(sharded)


@pytest.mark.parametrize(
    ("weight_map", "sentence"),
    [
        ({"t9": "part-1.safetensors"}, "tensor t9 is in part-1.safetensors, which does not hold it"),
        ({"t1": "../part-1.safetensors"}, "not a plain"),
        ({"t1": "/etc/part-1.safetensors"}, "not a plain"),
        ({"t1": "C:\\part-1.safetensors"}, "not a plain"),
        ({"t1": "..\\part-1.safetensors"}, "not a plain"),
        ({"t1": "C:part-1.safetensors"}, "not a plain"),
        ({"t1": "sub/part-1.safetensors"}, "not a plain"),
        ({"t1": "part-1.bin"}, "not a plain"),
        ({"t1": "\x00.safetensors"}, "not a plain"),
        ({"t1": 3}, "no usable weight_map"),
        ([], "no usable weight_map"),
    ],
)
def test_odd_indexes_are_one_sentence(sharded, weight_map, sentence):
    write(sharded, INDEX, {"weight_map": weight_map})
    with pytest.raises(DecdecError) as caught:
        open_checkpoint(sharded)
    assert sentence in caught.value.sentence


def test_linked_files_of_the_hub_cache_are_read(sharded, tmp_path):
    snapshot = tmp_path / "snapshot"
    snapshot.mkdir()
    for file in sharded.iterdir():
        if file.is_file():
            (snapshot / file.name).symlink_to(file)
    assert open_checkpoint(snapshot).load("t1").tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("text", "vision"),
    [
        ("language_model.model.", "vision_tower.x"),
        ("model.language_model.", "model.multi_modal_projector.x"),
    ],
)
def test_text_part_of_a_multimodal_gemma(tmp_path, text, vision):
    text_config = {"hidden_size": 8, "model_type": "gemma3_text"}
    config = {"model_type": "gemma3", "eos_token_id": [1, 106], "text_config": text_config}
    write(tmp_path, "config.json", config)
    save_file({text + "norm.weight": torch.ones(2), vision: torch.ones(3)}, tmp_path / "model.safetensors")
    checkpoint = open_checkpoint(tmp_path)
    assert checkpoint.names() == ["model.norm.weight"]
    assert checkpoint.load("model.norm.weight").tolist() == [1.0, 1.0]
    assert checkpoint.config["model_type"] == "gemma3_text"
    assert checkpoint.config["hidden_size"] == 8
    assert checkpoint.config["eos_token_id"] == [1, 106]


def test_tokenizer_files_are_copied_without_code(sharded, tmp_path):
    write(sharded, "tokenizer.json", TOKENIZER)
    settings = {"eos_token": "a", "chat_template": "T", "auto_map": {"AutoTokenizer": "evil.Evil"}}
    write(sharded, "tokenizer_config.json", settings)
    write(sharded, "special_tokens_map.json", {"eos_token": "a"})
    write(sharded, "generation_config.json", {"eos_token_id": [0, 1], "top_k": 5})
    write(sharded, "evil.py", "raise SystemExit")
    out = tmp_path / "out"
    open_checkpoint(sharded).write_tokenizer(out)
    assert {file.name for file in out.iterdir()} == {
        "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "generation_config.json",
        "chat_template.jinja",
    }  # fmt: skip
    assert json.loads((out / "tokenizer_config.json").read_text()) == {"eos_token": "a"}
    assert json.loads((out / "generation_config.json").read_text()) == {"eos_token_id": [0, 1], "top_k": 5}
    assert (out / "chat_template.jinja").read_text() == "T"
    assert (out / "tokenizer.json").read_bytes() == (sharded / "tokenizer.json").read_bytes()


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"chat_template.jinja": "J", "tokenizer_config.json": {"chat_template": "C"}}, "J"),
        (
            {"chat_template.json": {"chat_template": "F"}, "tokenizer_config.json": {"chat_template": "C"}},
            "F",
        ),
        (
            {
                "tokenizer_config.json": {
                    "chat_template": [{"name": "tool", "template": "X"}, {"name": "default", "template": "D"}]
                }
            },
            "D",
        ),
        ({"tokenizer_config.json": {"chat_template": 7}}, None),
        ({}, None),
    ],
)
def test_where_the_template_comes_from(sharded, tmp_path, files, expected):
    write(sharded, "tokenizer.json", TOKENIZER)
    for name, value in files.items():
        write(sharded, name, value)
    out = tmp_path / "out"
    open_checkpoint(sharded).write_tokenizer(out)
    template = out / "chat_template.jinja"
    assert (template.read_text() if template.exists() else None) == expected


def test_token_ids_come_from_the_config_when_nothing_else_has_them(sharded, tmp_path):
    write(sharded, "config.json", {"model_type": "llama", "eos_token_id": 7, "hidden_size": 2})
    write(sharded, "tokenizer.json", TOKENIZER)
    open_checkpoint(sharded).write_tokenizer(tmp_path / "out")
    assert json.loads((tmp_path / "out" / "generation_config.json").read_text()) == {"eos_token_id": 7}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "tokenizer.json is missing"),
        ("version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
        ("{", "cannot be read"),
        ({"model": 3}, "no tokenizer model"),
    ],
)
def test_odd_tokenizers_are_one_sentence(sharded, tmp_path, content, sentence):
    if content is not None:
        write(sharded, "tokenizer.json", content)
    with pytest.raises(DecdecError, match=sentence):
        open_checkpoint(sharded).write_tokenizer(tmp_path / "out")


def test_target_that_cannot_be_written_is_one_sentence(sharded, tmp_path):
    write(sharded, "tokenizer.json", TOKENIZER)
    (tmp_path / "blocked").write_text("a file where a folder should be")
    with pytest.raises(DecdecError, match="Writing tokenizer"):
        open_checkpoint(sharded).write_tokenizer(tmp_path / "blocked")
