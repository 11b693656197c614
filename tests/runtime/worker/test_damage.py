"""A failure over a model's files is told as damage only where their hashes say so."""

from __future__ import annotations

import pytest

from runtime import store
from runtime.errors import DecdecError, MachineLimit
from runtime.progress import JobContext
from runtime.store import atomic
from runtime.worker.damage import blamed_on_files


@pytest.fixture
def model(tmp_path, monkeypatch):
    monkeypatch.setenv("DECDEC_HOME", str(tmp_path))
    with store.building("tiny") as staging:
        atomic.write_bytes(staging / "config.json", b"{}")
        return store.publish("tiny", staging, {"source": "a test", "bits_per_weight": 5.5})


def load():
    with blamed_on_files("tiny", JobContext.silent()):
        raise KeyError("hidden_size")


def test_a_changed_file_is_named_with_the_way_out(model):
    (model.path / "config.json").write_bytes(b"[]")
    with pytest.raises(DecdecError, match=r"config.json does not match.* decdec-chat pull tiny"):
        load()
    assert store.models() == []


def test_another_failure_stands(model):
    with pytest.raises(KeyError):
        load()
    assert [record.name for record in store.models()] == ["tiny"]


def test_what_the_machine_has_not_got_is_no_file_s_fault(model):
    (model.path / "config.json").write_bytes(b"[]")
    with pytest.raises(MachineLimit), blamed_on_files("tiny", JobContext.silent()):
        raise MachineLimit("The model does not fit")
    assert [record.name for record in store.models()] == ["tiny"]
