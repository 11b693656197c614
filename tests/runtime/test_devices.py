"""Which device answers, on machines that are pretended."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import pytest
import torch

from runtime import device, devices
from runtime.errors import DecdecError


@dataclass
class Machine:
    """GPUs by compute capability, and what else is there."""

    gpus: tuple[tuple[int, int], ...] = ()
    driver: bool = True
    cuda: str | None = "13.0"
    triton: bool = True
    compiler: bool = True


@pytest.fixture
def machine(monkeypatch):
    """Pretend to be on a machine, with DECDEC_DEVICE set."""

    def become(found: Machine, wanted: str = "") -> None:
        monkeypatch.setenv("DECDEC_DEVICE", wanted)
        monkeypatch.delenv("CC", raising=False)
        monkeypatch.setattr(sys, "platform", "linux")
        monkeypatch.setattr(device, "driver_present", lambda: found.driver)
        monkeypatch.setattr(torch.version, "cuda", found.cuda)
        monkeypatch.setattr(torch.cuda, "is_available", lambda: bool(found.gpus))
        monkeypatch.setattr(torch.cuda, "device_count", lambda: len(found.gpus))
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda index: found.gpus[index])
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda index: f"NVIDIA {index}")
        monkeypatch.setattr(devices.importlib.util, "find_spec", lambda name: found.triton or None)
        monkeypatch.setattr(
            devices.shutil, "which", lambda name: name if found.compiler and name == "gcc" else None
        )

    return become


OLD, AMPERE, HOPPER = (7, 5), (8, 0), (9, 0)


@pytest.mark.parametrize(
    ("found", "wanted", "index"),
    [
        (Machine((HOPPER,)), "", 0),
        (Machine((OLD, AMPERE, HOPPER)), "", 1),
        (Machine((OLD, AMPERE, HOPPER)), "cuda:2", 2),
        (Machine((HOPPER,)), "cuda", 0),
        (Machine((HOPPER,)), "cpu", None),
        (Machine((OLD,)), "", None),
        (Machine(()), "", None),
        (Machine((HOPPER,), triton=False), "", None),
        (Machine((HOPPER,), compiler=False), "", None),
        (Machine((), driver=False, cuda=None), "", None),
    ],
)
def test_the_first_gpu_that_can_answers_unless_another_is_asked_for(machine, found, wanted, index):
    machine(found, wanted)
    assert devices.answering_gpu() == index


@pytest.mark.parametrize(
    ("found", "wanted", "words"),
    [
        (Machine((), driver=False), "cuda", "cuda:0 cannot be used: no NVIDIA driver was found"),
        (Machine((), driver=False, cuda=None), "cuda", "no NVIDIA driver was found, and .* without CUDA"),
        (Machine((), cuda=None), "cuda", "built without CUDA; install a CUDA build"),
        (Machine(()), "cuda", "driver is too old for CUDA 13.0"),
        (Machine((HOPPER,)), "cuda:1", "there is one GPU, cuda:0"),
        (Machine((HOPPER, HOPPER)), "cuda:2", "2 GPUs, numbered from 0"),
        (Machine((OLD,)), "cuda", "compute capability is 7.5 and 8.0 is needed"),
        (Machine((HOPPER,), triton=False), "cuda", "triton is not installed"),
        (Machine((HOPPER,), compiler=False), "cuda", "no C compiler; install gcc or set CC"),
    ],
)
def test_a_gpu_that_is_asked_for_and_cannot_answer_is_refused(machine, found, wanted, words):
    machine(found, wanted)
    with pytest.raises(DecdecError, match=f"{words}.*Unset DECDEC_DEVICE, or set it to cpu"):
        devices.answering_gpu()


def test_devices_are_shown_by_name(machine):
    machine(Machine((HOPPER,)))
    assert devices.label(0) == "NVIDIA 0 (cuda:0)"
    assert devices.label(None) == f"CPU ({torch.get_num_threads()} threads)"


@pytest.mark.parametrize(
    ("found", "wanted", "words"),
    [
        (Machine(()), "", "the driver is too old for CUDA 13.0"),
        (Machine((HOPPER,), cuda=None), "", "install a CUDA build"),
        (Machine((HOPPER,), triton=False), "", "triton is not installed"),
        (Machine((HOPPER,), compiler=False), "", "install gcc or set CC"),
        (Machine((OLD,)), "", "compute capability is 7.5"),
        (Machine((HOPPER,), compiler=False), "cpu", None),
        (Machine((), driver=False), "", None),
    ],
)
def test_a_cpu_that_answers_in_a_gpu_s_place_is_told_with_the_cause(machine, found, wanted, words):
    machine(found, wanted)
    assert devices.answering_gpu() is None
    assert devices.why_cpu() == "" if words is None else words in devices.why_cpu()


def test_macs_have_no_such_driver(machine, monkeypatch):
    machine(Machine((HOPPER,)))
    monkeypatch.setattr(sys, "platform", "darwin")
    assert devices.answering_gpu() is None
    assert "macOS" in devices.why_no_cuda()


def test_windows_needs_no_compiler(machine, monkeypatch):
    machine(Machine((HOPPER,), compiler=False))
    monkeypatch.setattr(sys, "platform", "win32")
    assert devices.answering_gpu() == 0
