"""What DECDEC_DEVICE asks for is understood or refused, without asking torch."""

from __future__ import annotations

import subprocess
import sys

import pytest

from runtime import device
from runtime.errors import DecdecError


@pytest.mark.parametrize(
    ("value", "wanted", "gpu"),
    [
        (None, device.AUTOMATIC, None),
        ("", device.AUTOMATIC, None),
        ("cpu", device.CPU, None),
        (" CPU ", device.CPU, None),
        ("cuda", "cuda:0", 0),
        ("CUDA:12", "cuda:12", 12),
    ],
)
def test_known_devices(monkeypatch, value, wanted, gpu):
    monkeypatch.delenv("DECDEC_DEVICE", raising=False)
    if value is not None:
        monkeypatch.setenv("DECDEC_DEVICE", value)
    assert (device.wanted(), device.wanted_gpu()) == (wanted, gpu)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("banana", "DECDEC_DEVICE is 'banana'"),
        ("cpu:0", "known are cpu, cuda and cuda:N"),
        ("cuda:1234", "known are"),
        ("cuda:\x1b[31m", r"\\x1b"),
    ],
)
def test_others_are_refused(monkeypatch, value, words):
    monkeypatch.setenv("DECDEC_DEVICE", value)
    with pytest.raises(DecdecError, match=words):
        device.require_wanted()


def test_a_gpu_without_a_driver_is_refused_before_any_work(monkeypatch):
    monkeypatch.setattr(device, "driver_present", lambda: False)
    monkeypatch.setenv("DECDEC_DEVICE", "cuda:1")
    with pytest.raises(DecdecError, match=r"device cuda:1 cannot be used: no NVIDIA driver.*doctor"):
        device.require_wanted()
    for value in ("", "cpu"):
        monkeypatch.setenv("DECDEC_DEVICE", value)
        device.require_wanted()


def test_asking_loads_no_library():
    code = "import sys, runtime.device; runtime.device.require_wanted(); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)
