"""A model appears whole or not at all, and is continued, repaired and replaced file by file."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime import store
from runtime.errors import DecdecError
from runtime.progress import JobContext
from runtime.store import atomic, folders

RECORD = {"source": "folder /x", "bits_per_weight": 5.5, "note": [1, 2]}
FILES = {
    "config.json": b"{}",
    "model.safetensors": b"w" * 5000,
    "base-rtn4/block-0000.safetensors": b"b" * 300,
}


def make(name="tiny", files=FILES, record=RECORD, identity=None):
    with store.building(name, identity) as staging:
        made = []
        for file, content in files.items():
            if not (staging / file).exists():
                atomic.write_bytes(staging / file, content)
                made.append(file)
        return store.publish(name, staging, record), made


def test_published_model_is_listed_with_hashes_from_hashlib(home):
    record, _ = make()
    assert [m.name for m in store.models()] == ["tiny"]
    assert (record.source, record.bits_per_weight, record.state) == ("folder /x", 5.5, "ready")
    assert record.bytes == sum(map(len, FILES.values()))
    written = json.loads((home / "models/tiny/manifest.json").read_text())
    assert written["record"] == RECORD
    assert written["files"] == {
        n: {"bytes": len(c), "sha256": hashlib.sha256(c).hexdigest()} for n, c in FILES.items()
    }
    assert not folders.staging("tiny").exists()


def interrupted_build():
    with store.building("tiny") as staging:
        atomic.write_bytes(staging / "config.json", b"{}")
        (staging / ".model.safetensors.abcd.part").write_bytes(b"half")
        raise RuntimeError


def test_half_made_model_is_never_listed_and_is_continued(home):
    with pytest.raises(RuntimeError):
        interrupted_build()
    assert store.models() == []
    record, made = make()
    assert "config.json" not in made
    assert not list(record.path.rglob("*.part"))


def test_what_was_made_from_something_else_is_dropped():
    with store.building("tiny", {"scale": "row"}) as staging:
        atomic.write_bytes(staging / "config.json", b"old")
    record, made = make(identity={"scale": "tensor"})
    assert "config.json" in made
    assert (record.path / "config.json").read_bytes() == b"{}"
    _, again = make(identity={"scale": "tensor"})
    assert again == []


@pytest.mark.parametrize("damage", [lambda p: p.write_bytes(b"x" * 5000), lambda p: p.unlink()])
def test_only_the_damaged_file_is_made_again(home, damage):
    record, _ = make()
    damage(record.path / "model.safetensors")
    with pytest.raises(DecdecError, match=r"tiny is damaged: model\.safetensors .*quarantine"):
        store.verify_files(record, quick=False)
    assert store.models() == []
    with pytest.raises(DecdecError, match=r"damaged: model\.safetensors is missing"):
        store.find("tiny")
    _, made = make()
    assert made == ["model.safetensors"]
    store.verify_files(store.find("tiny"), quick=False)
    assert not folders.quarantine("tiny").exists()


def test_quick_check_reads_small_files_and_sees_the_size_of_large_ones():
    record, _ = make()
    (record.path / "model.safetensors").write_bytes(b"x" * 5000)
    store.verify_files(record, quick=True)
    (record.path / "model.safetensors").write_bytes(b"x" * 4999)
    with pytest.raises(DecdecError, match="damaged"):
        store.verify_files(record, quick=True)
    assert (folders.quarantine("tiny") / "model.safetensors").read_bytes() == b"x" * 4999


def test_quick_check_finds_a_flipped_bit_in_a_small_file():
    record, _ = make()
    content = bytearray((record.path / "config.json").read_bytes())
    content[-1] ^= 1
    (record.path / "config.json").write_bytes(content)
    with pytest.raises(DecdecError, match=r"damaged: config\.json"):
        store.verify_files(record, quick=True)


def test_silent_damage_is_found_when_a_model_is_extended():
    record, _ = make()
    (record.path / "config.json").write_bytes(b"[]")
    _, made = make(files={**FILES, "extra.json": b"1"})
    assert made == ["config.json", "extra.json"]


def test_extending_leaves_the_published_model_alone_until_the_end():
    make()
    with store.building("tiny") as staging:
        atomic.write_bytes(staging / "config.json", b"new")
        assert (store.find("tiny").path / "config.json").read_bytes() == b"{}"
    store.verify_files(store.find("tiny"), quick=False)


def test_crash_between_the_two_renames_loses_nothing():
    make()
    os.rename(folders.final("tiny"), folders.old("tiny"))
    with store.building("tiny"):
        store.verify_files(store.find("tiny"), quick=False)


def test_failed_rename_puts_the_former_model_back():
    make()
    real = os.rename

    def rename(source, target):
        if Path(source) == folders.staging("tiny"):
            raise PermissionError(13, "denied", str(source))
        real(source, target)

    with mock.patch("os.rename", rename), pytest.raises(DecdecError, match="Publishing tiny failed"):
        make(files={**FILES, "extra.json": b"1"})
    assert store.find("tiny").bytes == sum(map(len, FILES.values()))


@pytest.mark.parametrize("identity", [None, {"scale": "row"}])
@pytest.mark.parametrize("gone", ["models", "models/.staging-tiny"])
def test_what_appears_after_the_folder_was_removed_is_no_model(home, gone, identity):
    with store.building("tiny", identity) as staging:
        atomic.write_bytes(staging / "model-00001.safetensors", b"first")
        shutil.rmtree(home / gone)
        atomic.write_bytes(staging / "model-00002.safetensors", b"second")
        with pytest.raises(DecdecError, match=r"not whole: files in .*staging-tiny were removed meanwhile"):
            store.publish("tiny", staging, RECORD)
    assert store.models() == []
    record, made = make(identity=identity or {"scale": "row"})
    assert made == list(FILES)
    assert not (record.path / "model-00002.safetensors").exists()


def test_a_removal_that_goes_on_while_files_are_hashed_is_noticed():
    """It has taken a shard before the files are listed, and what the folder was made from after that."""
    with store.building("tiny", {"scale": "row"}) as staging:
        for file, content in FILES.items():
            atomic.write_bytes(staging / file, content)
        (staging / "model.safetensors").unlink()
        goes_on = JobContext("prepare", lambda e: (staging / ".identity.json").unlink(True), lambda: False)
        with pytest.raises(DecdecError, match="removed meanwhile"):
            store.publish("tiny", staging, RECORD, goes_on)
    assert store.models() == []


@pytest.mark.parametrize("record", [{}, {"source": "x"}, {"source": 1, "bits_per_weight": 1.0}])
def test_a_record_without_source_or_bits_is_refused(record):
    with pytest.raises(DecdecError, match="record does not say"):
        make(record=record)
    assert store.models() == []


def test_an_empty_model_is_refused():
    with pytest.raises(DecdecError, match="empty"):
        make(files={})


@pytest.mark.parametrize("name", ["../evil", "a/b", "", ".hidden", "CON", "a b", "x" * 200, "a\\b", "a\0b"])
def test_names_that_could_leave_the_folder_are_refused(name):
    with pytest.raises(DecdecError, match="cannot be the name"), store.building(name):
        pass


_HOLDER = """
import sys
from runtime import store
with store.building("tiny"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_process_is_told_and_a_killed_holder_frees_the_lock():
    holder = subprocess.Popen([sys.executable, "-c", _HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(DecdecError, match="already going on"), store.building("tiny"):
            pass
        with pytest.raises(DecdecError, match="already going on"):
            store.remove("tiny")
    finally:
        holder.kill()
        holder.wait()
    make()


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 6), max_size=6))
def test_any_series_of_interruptions_ends_in_the_same_model(stops):
    """Each start makes at most `stop` files, then dies; nothing is made twice, the end is always the same."""
    files = {f"part-{i}/data": bytes([i]) * (i * 37) for i in range(6)}
    with tempfile.TemporaryDirectory() as home, mock.patch.dict(os.environ, DECDEC_HOME=home):
        made = []
        for stop in [*stops, len(files)]:
            with store.building("tiny") as staging:
                missing = [name for name in files if not (staging / name).exists()]
                for name in missing[:stop]:
                    atomic.write_bytes(staging / name, files[name])
                    made.append(name)
            assert store.models() == []
        with store.building("tiny") as staging:
            record = store.publish("tiny", staging, RECORD)
        assert made == list(files)
        assert {name: (record.path / name).read_bytes() for name in files} == files


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs the names of open files")
def test_everything_is_on_the_disk_before_it_is_a_model(home, monkeypatch):
    """A power cut must not keep the record of a model and lose its files, or their names."""
    synced, before = set(), {}
    fsync, rename = os.fsync, os.rename

    def noting(file):
        synced.add(os.readlink(f"/proc/self/fd/{file}"))
        fsync(file)

    def seen(source, target):
        source = Path(source)
        found = [source, *source.rglob("*")]
        before[Path(target).name] = [str(path) for path in found if str(path) not in synced]
        rename(source, target)

    make(identity={"a": 1})
    monkeypatch.setattr(os, "fsync", noting)
    monkeypatch.setattr(os, "rename", seen)
    make(files={**FILES, "base-rtn3/block-0000.safetensors": b"c"}, identity={"a": 1})
    missing = {name for name in before["tiny"] if not name.endswith((".identity.json", "manifest.json"))}
    assert missing == set()
    assert str(home / "models") in synced
