"""From a typed name to a source, and the checks of local models."""

from __future__ import annotations

import json

import pytest

from runtime.errors import DecdecError
from runtime.progress import JobContext
from runtime.sources import catalogue, resolve
from runtime.sources.hub import HubSource
from runtime.sources.local import FolderSource, GgufSource
from runtime.sources.wheel import WheelSource

SILENT = JobContext.silent()
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "My Model"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"w")
    return folder


def test_names_of_the_catalogue_and_of_the_hub():
    assert isinstance(resolve("smollm2-135m-instruct"), WheelSource)
    known = resolve("qwen/qwen3-0.6b")
    assert isinstance(known, HubSource)
    assert (known.name, known.repo, known.download_bytes) == (
        "Qwen3-0.6B",
        "Qwen/Qwen3-0.6B",
        2 * 596_049_920,
    )
    assert resolve("Someone/Some_model.v2").name == "Someone--Some_model.v2"
    assert resolve("HuggingFaceTB/SmolLM2-135M-Instruct").record["kind"] == "hub"


@pytest.mark.parametrize(
    "name", ["", "   ", "no such model", "a/b/c", "../x/y/z", "./none", "none.gguf", "a\0b", "-rf"]
)
def test_what_is_nothing_is_refused(name):
    with pytest.raises(DecdecError, match=r"There is no (model|file or folder)"):
        resolve(name)


def test_no_name_is_not_the_current_folder(folder, monkeypatch):
    monkeypatch.chdir(folder)
    with pytest.raises(DecdecError, match="There is no model ''"):
        resolve("")


def test_near_names_are_offered():
    with pytest.raises(DecdecError, match=r"Try SmolLM2-135M-Instruct or "):
        resolve("smolm2")


def test_paths_come_first_but_only_if_they_hold_a_model(folder, monkeypatch):
    source = resolve(str(folder))
    assert isinstance(source, FolderSource)
    assert (source.name, source.fetch(SILENT)) == ("My-Model", folder)
    assert isinstance(resolve("My Model"), FolderSource)
    (folder.parent / "Qwen3-0.6B").mkdir()
    assert isinstance(resolve("Qwen3-0.6B"), HubSource)
    (folder.parent / "Qwen3-0.6B" / "config.json").write_text("{}")
    assert isinstance(resolve("Qwen3-0.6B"), FolderSource)
    monkeypatch.setenv("HOME", str(folder.parent))
    assert resolve("~/My Model").fetch(SILENT) == folder


def test_gguf_files(tmp_path):
    path = tmp_path / "a model.Q4_1.gguf"
    path.write_bytes(b"GGUF" + bytes(60))
    source = resolve(str(path))
    assert isinstance(source, GgufSource)
    assert (source.name, source.fetch(SILENT)) == ("a-model.Q4_1", path)
    before = source.record
    path.write_bytes(b"GGUF" + bytes(61))
    assert source.record != before
    assert source.discard() == 0
    assert path.exists()


@pytest.mark.parametrize(
    ("content", "words"), [(b"PK\3\4", "not a GGUF"), (b"", "not a GGUF"), (POINTER, "git-lfs")]
)
def test_what_only_claims_to_be_gguf(tmp_path, content, words):
    path = tmp_path / "x.gguf"
    path.write_bytes(content)
    with pytest.raises(DecdecError, match=words):
        resolve(str(path)).fetch(SILENT)


def test_other_files_are_no_models(tmp_path):
    (tmp_path / "x.bin").write_bytes(b"")
    with pytest.raises(DecdecError, match=r"must be a \.gguf"):
        resolve(str(tmp_path / "x.bin"))


def _index(folder, shards):
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": shards}))


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda f: (f / "config.json").unlink(), "no config.json"),
        (lambda f: (f / "model.safetensors").unlink(), "no safetensors"),
        (lambda f: (f / "model.safetensors").rename(f / "pytorch_model.bin"), "pickle"),
        (lambda f: (f / "model.safetensors").write_bytes(POINTER), "git-lfs pointer"),
        (lambda f: (f / "config.json").write_bytes(POINTER), "git-lfs pointer"),
        (lambda f: _index(f, {"w": "model-2.safetensors"}), "model-2.safetensors is missing"),
        (lambda f: _index(f, {"w": "../../secret.safetensors"}), "names files outside"),
        (lambda f: _index(f, {"w": 3}), "is damaged"),
        (lambda f: (f / "model.safetensors.index.json").write_bytes(b"{"), "is damaged"),
    ],
)
def test_folders_that_are_not_whole(folder, damage, words):
    damage(folder)
    with pytest.raises(DecdecError, match=words) as caught:
        resolve(f"{folder}").fetch(SILENT)
    assert "\n" not in caught.value.sentence


def test_every_entry_resolves_to_its_own_name():
    for entry in catalogue.load():
        source = resolve(entry.name)
        assert (source.name, source.download_bytes) == (entry.name, entry.download_bytes)
