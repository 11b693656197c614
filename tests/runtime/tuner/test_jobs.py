"""Tuning begins only where it can end."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace

import pytest
import torch

from runtime.errors import DecdecError
from runtime.layers.base import LINEAR_KINDS
from runtime.model.weights import linear_shape
from runtime.progress import JobContext
from runtime.store.locks import exclusive
from runtime.tuner import jobs
from runtime.tuner.profile import Machine, read_profile
from tests.runtime.tuner.simulated import SimulatedDevice


@pytest.fixture(autouse=True)
def measuring_is_a_failure(monkeypatch):
    def measurer(*args: object) -> None:
        pytest.fail("nothing may be measured")

    monkeypatch.setattr(jobs, "StepMeasurer", measurer)


def test_a_home_that_cannot_be_written_is_told_before_measuring(tmp_path, monkeypatch):
    (tmp_path / "home").write_text("a file where a folder should be")
    monkeypatch.setenv("DECDEC_HOME", str(tmp_path / "home"))
    with pytest.raises(DecdecError, match="Taking a lock failed"):
        jobs.tune({"model": "m"}, JobContext.silent())


def test_a_disk_without_room_for_the_profile_is_told_before_measuring(tmp_path, monkeypatch):
    monkeypatch.setenv("DECDEC_HOME", str(tmp_path))
    monkeypatch.setattr(jobs, "MAX_BYTES", 10**18)
    with pytest.raises(DecdecError, match=r"Not enough disk space in .*profiles"):
        jobs.tune({"model": "m"}, JobContext.silent())


def test_two_do_not_measure_each_other(tmp_path, monkeypatch):
    monkeypatch.setenv("DECDEC_HOME", str(tmp_path))
    with exclusive("tune", "Tuning"), pytest.raises(DecdecError, match="Tuning is already going on"):
        jobs.tune({"model": "m"}, JobContext.silent())


@pytest.fixture
def gpu(tmp_path, monkeypatch):
    """A machine that is told to use its GPU, which is a simulated one."""
    monkeypatch.setenv("DECDEC_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(jobs.devices, "answering_gpu", lambda: 0)
    machine = Machine("cuda:0", "NVIDIA H200", 0, "2.13", "0.68", "0.1", driver="580.1", triton="3.6")
    monkeypatch.setattr(jobs, "wait_for_quiet", lambda ctx: True)
    monkeypatch.setattr(
        jobs, "gpu_target", lambda command, index, ctx: jobs.Target(SimulatedDevice(2.7), machine, 50.4)
    )
    return machine


def test_a_gpu_is_tuned_and_its_profile_kept_beside_the_cpu_s(gpu, tmp_path):
    picture = tmp_path / "knees.svg"
    result = jobs.tune({"model": "m", "base": "awq4", "plot": str(picture)}, JobContext.silent())
    assert picture.read_text().startswith("<?xml")
    assert result["device"] == "cuda:0"
    assert set(result["n_tb"]) == {"qkv", "o", "gate_up", "down"}
    assert result["report"]["link_gb_s"] == 50.4
    found, _ = read_profile("m", "awq4", gpu)
    assert found is not None
    assert dict(found.n_tb) == result["n_tb"]
    assert read_profile("m", "awq4")[0] is None
    for detent in found.detents:
        assert detent.measured_pct <= detent.target_pct


def test_a_picture_that_cannot_be_drawn_is_told_before_measuring(gpu, tmp_path):
    with pytest.raises(DecdecError, match="cannot be drawn"):
        jobs.tune({"model": "m", "plot": str(tmp_path / "knees.pdf")}, JobContext.silent())


def test_a_model_is_measured_by_the_shapes_of_its_config(monkeypatch):
    from runtime.tuner import gpu_model

    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 576,
        "intermediate_size": 1536,
        "num_attention_heads": 9,
        "num_key_value_heads": 3,
        "num_hidden_layers": 30,
        "vocab_size": 49152,
        "rms_norm_eps": 1e-5,
        "max_position_embeddings": 8192,
        "rope_theta": 100000.0,
        "tie_word_embeddings": True,
    }
    asked = []
    monkeypatch.setattr(gpu_model.store, "find", lambda name: SimpleNamespace(path=name))
    monkeypatch.setattr(gpu_model, "Int8xReader", lambda path: SimpleNamespace(config=config))
    monkeypatch.setattr(gpu_model, "usable_gpu", lambda index: torch.device("cpu"))
    monkeypatch.setattr(gpu_model.torch.cuda, "device", lambda device: nullcontext())
    monkeypatch.setattr(gpu_model, "make_measurer", lambda *args: asked.append(args))
    gpu_model.model_measurer("m", "awq4", 0, JobContext.silent())
    spec, base, *_ = asked[0]
    assert base == "awq4"
    shapes = {kind: linear_shape(spec, kind) for kind in LINEAR_KINDS}
    assert shapes == {"qkv": (960, 576), "o": (576, 576), "gate_up": (3072, 576), "down": (576, 1536)}
    assert (len(spec.layers), spec.vocab_size) == (30, 49152)
