"""A device that was asked for answers, or a sentence says why not."""

from __future__ import annotations

import pytest

from runtime import device
from runtime.errors import DecdecError


@pytest.mark.parametrize("value", [None, "", "cpu", " CPU "])
def test_the_cpu_is_what_there_is(monkeypatch, value):
    monkeypatch.delenv("DECDEC_DEVICE", raising=False)
    if value is not None:
        monkeypatch.setenv("DECDEC_DEVICE", value)
    device.require_wanted()


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("cuda", "device cuda cannot be used: .*CPU only"),
        ("CUDA:1", "CUDA:1"),
        ("banana", "DECDEC_DEVICE is 'banana'"),
        ("cpu:0", "known are cpu, cuda and cuda:N"),
        ("cuda:\x1b[31m", r"\\x1b"),
    ],
)
def test_another_device_is_refused(monkeypatch, value, words):
    monkeypatch.setenv("DECDEC_DEVICE", value)
    with pytest.raises(DecdecError, match=words):
        device.require_wanted()
