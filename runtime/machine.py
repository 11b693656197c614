"""What a machine has, as far as the system itself says it: no torch, so it is there at once."""

from __future__ import annotations

import contextlib
import os
import platform
import re
import shutil
from pathlib import Path
from typing import Any

import psutil

from runtime import device, locations
from runtime.store.oserrors import nearest_existing
from runtime.worker.environment import usable_cores

try:
    import resource
except ImportError:  # Windows has no such limits.
    resource = None  # type: ignore[assignment]

# Of host memory so much stays free when residuals are page-locked.
RESERVE_BYTES = 1 << 30
_DRIVER_VERSION = Path("/proc/driver/nvidia/version")
_GPU_FOLDER = Path("/proc/driver/nvidia/gpus")
_CPU_INFO = Path("/proc/cpuinfo")


def glance() -> dict[str, Any]:
    """What is known before the engine has started, in the shape of a doctor's report."""
    return {"devices": [cpu(), *gpus()], "memory": memory(), "disk": disk()}


def cpu() -> dict[str, Any]:
    """The processor."""
    return {
        "name": processor_name() or "CPU",
        "kind": "cpu",
        "usable": True,
        "cores": psutil.cpu_count(logical=False) or os.cpu_count() or 1,
        "threads_used": usable_cores(),
    }


def gpus() -> list[dict[str, Any]]:
    """NVIDIA GPUs by name; whether they can be used is for the engine to find out."""
    if not device.driver_present():
        return [{"name": "NVIDIA GPU", "kind": "cuda", "usable": False, "why": device.NO_DRIVER}]
    files = sorted(_GPU_FOLDER.glob("*/information"))
    names = [_field(_read(file), "Model") for file in files]
    return [{"name": name, "kind": f"cuda:{i}"} for i, name in enumerate(filter(None, names))]


def memory() -> dict[str, int | None]:
    """Bytes of host memory. lock_limit: what the system lets a process lock, None: as much as it likes.
    pinnable: what can be page-locked for a GPU, whose driver counts by its own rules.
    """
    found = psutil.virtual_memory()
    return {
        "total_bytes": found.total,
        "available_bytes": found.available,
        "lock_limit_bytes": _lock_limit(),
        "pinnable_bytes": max(0, found.available - RESERVE_BYTES),
    }


def disk() -> dict[str, Any]:
    """The disk on which models lie, or will lie."""
    folder = locations.models()
    found: dict[str, Any] = {"folder": str(folder)}
    with contextlib.suppress(OSError):
        usage = shutil.disk_usage(nearest_existing(folder))
        found |= {"total_bytes": usage.total, "free_bytes": usage.free}
    return found


def processor_name() -> str:
    """The processor as the system names it."""
    return _field(_read(_CPU_INFO), "model name") or platform.processor() or platform.machine()


def driver_version() -> str:
    """Version of NVIDIA's kernel driver, as it says itself; empty where it does not."""
    found = re.search(r"\b(\d{3,}\.\d+(?:\.\d+)?)\b", _read(_DRIVER_VERSION))
    return found[1] if found else ""


def _lock_limit() -> int | None:
    if resource is None:
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    return None if soft == resource.RLIM_INFINITY else soft


def _field(text: str, name: str) -> str:
    """The value of the first line `name: value`."""
    lines = (line.partition(":") for line in text.splitlines())
    return next((value.strip() for key, _, value in lines if key.strip() == name), "")


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
