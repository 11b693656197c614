from __future__ import annotations

import json
import os

import psutil
import pytest
import torch

from runtime import bandwidth, devices
from runtime import doctor as module
from runtime.bandwidth import CpuRates
from runtime.doctor import doctor
from runtime.progress import JobContext


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("DECDEC_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def report(measure=False):
    found = doctor({"measure": measure}, JobContext.silent())
    json.dumps(found)
    return found


def check(found, name):
    return next(each for each in found["checks"] if each["name"] == name)


def test_reports_this_machine_and_makes_nothing(home):
    found = report()
    cpu = found["devices"][0]
    assert cpu["kind"] == "cpu"
    assert cpu["usable"]
    assert cpu["cores"] == (psutil.cpu_count(logical=False) or os.cpu_count())
    assert found["memory"]["total_bytes"] == psutil.virtual_memory().total
    assert found["versions"]["torch"].startswith(torch.__version__.split("+")[0])
    assert found["paths"]["models"] == str(home / "models")
    assert not home.exists()


def test_sizes_are_those_on_disk(home):
    (home / "models" / "m").mkdir(parents=True)
    (home / "models" / "m" / "a").write_bytes(b"x" * 1234)
    (home / "models" / "b").write_bytes(b"x" * 66)
    assert report()["sizes"] == {
        "models_bytes": 1300,
        "downloads_bytes": 0,
        "profiles_bytes": 0,
        "compiled_bytes": 0,
    }


class Properties:
    name, major, minor = "NVIDIA Old", 7, 5


def test_gpus_are_shown_with_what_keeps_them_from_answering(monkeypatch):
    monkeypatch.setattr(devices, "why_no_cuda", lambda: "")
    monkeypatch.setattr(devices, "why_no_kernels", lambda: "")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda index: (7, 5) if index else (9, 0))
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: Properties)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda index: "NVIDIA New")
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda index: (5, 8))
    monkeypatch.delenv("DECDEC_DEVICE", raising=False)
    found = report()
    usable, old = found["devices"][1:]
    assert (usable["usable"], usable["free_bytes"], "why" in usable) == (True, 5, False)
    assert (old["usable"], old["memory_bytes"]) == (False, 8)
    assert "7.5" in old["why"]
    assert check(found, "device")["note"] == "answers come from NVIDIA New (cuda:0)"


def test_one_entry_says_why_there_is_no_gpu(monkeypatch):
    monkeypatch.setattr(devices, "why_no_cuda", lambda: "it was sold")
    monkeypatch.setenv("DECDEC_DEVICE", "cuda")
    found = report()
    assert [each["why"] for each in found["devices"][1:]] == ["it was sold"]
    refused = check(found, "device")
    assert not refused["ok"]
    assert "it was sold" in refused["note"]


def test_hub_settings_without_secrets(monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    monkeypatch.setenv("HF_ENDPOINT", "https://mirror.example")
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    found = report()
    assert check(found, "model hub") == {
        "name": "model hub",
        "ok": None,
        "note": "https://mirror.example, not checked; an access token for gated models",
    }, "nobody was asked, so nothing is well"
    assert "hf_secret" not in json.dumps(found)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert check(report(), "model hub")["ok"] is False
    monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.delenv("HF_TOKEN")
    assert check(report(), "model hub")["note"].endswith("; no access token for gated models")


def test_a_folder_that_cannot_be_written_is_told(monkeypatch):
    monkeypatch.setattr(os, "access", lambda *args: False)
    found = check(report(), "folder")
    assert not found["ok"]
    assert "DECDEC_HOME" in found["note"]


def test_missing_compiler_is_told(monkeypatch):
    monkeypatch.setattr(devices, "compiler", lambda: "")
    assert "C compiler" in module._compiler_check()["note"]


def test_where_no_gpu_answers_the_processor_s_speeds_are_measured(monkeypatch):
    monkeypatch.setattr(devices, "answering_gpu", lambda: None)
    cpu = report(measure=True)["devices"][0]
    for name in ("memory_gb_s", "int4_gb_s", "int8_gb_s"):
        assert 0.01 < cpu[name] < 2000


def test_of_the_gpu_that_answers_memory_and_link_are_measured(monkeypatch):
    gpu = {"name": "NVIDIA", "kind": "cuda:1", "usable": True}
    monkeypatch.setattr(devices, "answering_gpu", lambda: 1)
    monkeypatch.setattr(devices, "label", lambda index: "GPU")
    monkeypatch.setattr(module.gpus, "found", lambda: [{"kind": "cuda:0"}, dict(gpu)])
    monkeypatch.setattr(bandwidth, "link_gb_s", lambda index: 12.345 * index)
    monkeypatch.setattr(bandwidth, "gpu_gb_s", lambda index: 200.0 * index)
    assert report(measure=True)["devices"][1:] == [
        {"kind": "cuda:0"},
        {**gpu, "link_gb_s": 12.35, "memory_gb_s": 200.0},
    ]


def test_a_gpu_that_is_too_full_to_measure_is_still_shown(monkeypatch):
    def full(index):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(devices, "answering_gpu", lambda: 0)
    monkeypatch.setattr(devices, "label", lambda index: "GPU")
    monkeypatch.setattr(module.gpus, "found", lambda: [{"kind": "cuda:0", "usable": True}])
    monkeypatch.setattr(bandwidth, "link_gb_s", full)
    assert report(measure=True)["devices"][1] == {"kind": "cuda:0", "usable": True}


def test_the_report_arrives_before_its_measurements(monkeypatch):
    events = []
    monkeypatch.setattr(devices, "answering_gpu", lambda: None)
    monkeypatch.setattr(bandwidth, "cpu_rates", lambda: events.append("measured") or CpuRates(1, 2, 3))
    doctor({}, JobContext("doctor", events.append, lambda: False))
    first = events[0]
    assert first.data["report"]["memory"]["total_bytes"] == psutil.virtual_memory().total
    assert events[1] == "measured"


def test_a_full_disk_is_told_with_what_helps(monkeypatch):
    monkeypatch.setattr(module.machine, "disk", lambda: {"free_bytes": 5_000_000})
    found = check(report(), "disk space")
    assert not found["ok"]
    assert "DECDEC_HOME" in found["fix"]
    assert "5.0 MB" in found["note"]


def test_a_driver_that_is_too_old_is_told_with_what_helps(monkeypatch):
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(module.gpus.device, "driver_present", lambda: True)
    gpu = report()["devices"][1]
    assert "too old for CUDA 13.0" in gpu["why"]
    assert gpu["fix"] == "update NVIDIA's driver"
