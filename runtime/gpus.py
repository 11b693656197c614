"""The machine's CUDA devices as the doctor shows them: what they have, and what keeps them from answering."""

from __future__ import annotations

from typing import Any

import torch

from runtime import device, devices, machine

Found = dict[str, Any]


def found() -> list[Found]:
    """Every CUDA device, or one entry that says why there is none, and what helps."""
    if why := devices.why_no_cuda():
        gpu = {"name": "NVIDIA GPU", "kind": "cuda", "usable": False, "why": why}
        return [gpu | _given("driver", machine.driver_version()) | _given("fix", _no_cuda_fix())]
    return [_gpu(index) for index in range(torch.cuda.device_count())]


def _gpu(index: int) -> Found:
    """free_bytes: what the engine itself holds there counts as free, for another model takes its place."""
    properties = torch.cuda.get_device_properties(index)
    free, total = torch.cuda.mem_get_info(index)
    too_old, no_kernels = devices.why_not(index), devices.why_no_kernels()
    why = too_old or no_kernels
    fix = "answers can come from the CPU" if too_old else ""
    return {
        "name": properties.name,
        "kind": f"cuda:{index}",
        "usable": not why,
        "memory_bytes": total,
        "free_bytes": free + _own_bytes(index),
        "compute_capability": f"{properties.major}.{properties.minor}",
        **_given("driver", machine.driver_version()),
        **_given("why", why),
        **_given("fix", fix),
    }


def _own_bytes(index: int) -> int:
    return torch.cuda.memory_reserved(index) if torch.cuda.is_initialized() else 0


def _no_cuda_fix() -> str:
    if torch.version.cuda is None:
        return ""
    if not device.driver_present():
        return "install NVIDIA's driver if this machine has such a GPU"
    return "update NVIDIA's driver"


def _given(key: str, text: str) -> Found:
    return {key: text} if text else {}
