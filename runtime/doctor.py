"""What this machine can do and why not: devices, memory, versions, folders. Looks only; changes nothing."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
from pathlib import Path
from typing import Any

import psutil
import torch

from runtime import devices, locations
from runtime.errors import DecdecError
from runtime.progress import JobContext
from runtime.worker.environment import usable_cores

PACKAGES = (
    "decdec-chat",
    "torch",
    "triton",
    "numba",
    "transformers",
    "tokenizers",
    "safetensors",
    "huggingface_hub",
    "gguf",
    "textual",
)


def doctor(args: dict[str, Any], ctx: JobContext) -> dict[str, Any]:
    """The report behind `doctor --json`; takes no arguments and cannot fail on a missing device."""
    return {
        "devices": [_cpu(), *_gpus()],
        "memory": _memory(),
        "checks": [_home_check(), _device_check(), _compiler_check(), _hub_check()],
        "versions": _versions(),
        "paths": _paths(),
        "sizes": {f"{name}_bytes": _size(path) for name, path in _folders().items()},
    }


def _cpu() -> dict[str, Any]:
    return {
        "name": _cpu_name(),
        "kind": "cpu",
        "usable": True,
        "cores": psutil.cpu_count(logical=False) or os.cpu_count() or 1,
        "threads_used": usable_cores(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
    }


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, "") or platform.processor() or platform.machine() or "CPU"


def _memory() -> dict[str, int]:
    memory = psutil.virtual_memory()
    return {"total_bytes": memory.total, "available_bytes": memory.available}


def _gpus() -> list[dict[str, Any]]:
    """Every CUDA device, or one entry that says why there is none."""
    if why := devices.why_no_cuda():
        return [{"name": "NVIDIA GPU", "kind": "cuda", "usable": False, "why": why}]
    return [_gpu(index) for index in range(torch.cuda.device_count())]


def _gpu(index: int) -> dict[str, Any]:
    properties = torch.cuda.get_device_properties(index)
    free, total = torch.cuda.mem_get_info(index)
    why = devices.why_not(index) or devices.why_no_kernels()
    return {
        "name": properties.name,
        "kind": f"cuda:{index}",
        "usable": not why,
        "memory_bytes": total,
        "free_bytes": free,
        "compute_capability": f"{properties.major}.{properties.minor}",
    } | ({"why": why} if why else {})


def _compiler_check() -> dict[str, Any]:
    """Triton builds a small launcher with the system's C compiler on first use; only GPUs need it."""
    if why := devices.why_no_kernels():
        return _check("Triton", False, f"{why} (for GPUs only)")
    return _check("Triton", True, f"with {devices.compiler()}")


def _home_check() -> dict[str, Any]:
    folder = _nearest(locations.home())
    name = "folder"
    if not os.access(folder, os.W_OK | os.X_OK):
        return _check(name, False, f"{folder} cannot be written; set DECDEC_HOME to another folder")
    return {**_check(name, True, str(locations.home())), "free_bytes": shutil.disk_usage(folder).free}


def _device_check() -> dict[str, Any]:
    try:
        return _check("device", True, f"answers come from {devices.label(devices.answering_gpu())}")
    except DecdecError as error:
        return _check("device", False, error.sentence)


def _hub_check() -> dict[str, Any]:
    """What the environment says about the model hub; nobody is asked over the network, no token is shown."""
    where = os.environ.get("HF_ENDPOINT") or "huggingface.co"
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE"):
        return _check(
            "model hub", False, "HF_HUB_OFFLINE is set; only models that are already here can be used"
        )
    return _check("model hub", True, f"{where}, {'with' if os.environ.get('HF_TOKEN') else 'no'} token")


def _check(name: str, ok: bool, note: str) -> dict[str, Any]:
    return {"name": name, "ok": ok, "note": note}


def _versions() -> dict[str, str | None]:
    found: dict[str, str | None] = {"python": platform.python_version(), "system": platform.platform()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = None
    return found


def _folders() -> dict[str, Path]:
    return {
        "models": locations.models(),
        "downloads": locations.downloads(),
        "profiles": locations.profiles(),
        "compiled": locations.compiled(),
    }


def _paths() -> dict[str, str]:
    folders = {"home": locations.home(), **_folders(), "logs": locations.home() / "logs"}
    return {name: str(path) for name, path in folders.items()} | {"settings": str(locations.settings_file())}


def _nearest(folder: Path) -> Path:
    """The folder itself or its closest parent that exists."""
    return next(path for path in (folder, *folder.parents) if path.exists())


def _size(folder: Path) -> int:
    """Bytes of all files below; a file that vanishes or may not be looked at counts nothing."""
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(root, name)).st_size
            except OSError:
                continue
    return total
