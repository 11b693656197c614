from __future__ import annotations

import json
import os

import psutil
import pytest
import torch

from runtime import doctor as module
from runtime.doctor import doctor
from runtime.progress import JobContext


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("DECDEC_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def report():
    found = doctor({}, JobContext.silent())
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


@pytest.mark.parametrize(
    ("driver", "cuda", "available", "reason"),
    [
        (False, None, False, "none found"),
        (True, None, False, "built without CUDA"),
        (False, "13.0", False, "no NVIDIA driver"),
        (True, "13.0", False, "too old"),
        (True, "13.0", True, ""),
    ],
)
def test_says_why_there_is_no_gpu(monkeypatch, driver, cuda, available, reason):
    monkeypatch.setattr(module, "_driver_present", lambda: driver)
    monkeypatch.setattr(torch.version, "cuda", cuda)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: available)
    why = module._why_no_cuda()
    assert reason in why
    assert bool(why) == bool(reason)


def test_hub_settings_without_secrets(monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    monkeypatch.setenv("HF_ENDPOINT", "https://mirror.example")
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    found = report()
    assert check(found, "model hub") == {
        "name": "model hub",
        "ok": True,
        "note": "https://mirror.example, with token",
    }
    assert "hf_secret" not in json.dumps(found)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert not check(report(), "model hub")["ok"]


def test_a_folder_that_cannot_be_written_is_told(monkeypatch):
    monkeypatch.setattr(os, "access", lambda *args: False)
    found = check(report(), "folder")
    assert not found["ok"]
    assert "DECDEC_HOME" in found["note"]


def test_missing_compiler_is_told(monkeypatch):
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(module.shutil, "which", lambda name: None)
    assert "C compiler" in module._compiler_check()["note"]
