"""What this machine can do and why not: devices, memory, speeds, versions, folders. Changes nothing."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import torch

from runtime import bandwidth, devices, gpus, locations, machine
from runtime.errors import DecdecError
from runtime.progress import JobContext
from runtime.removal import removal
from runtime.store.oserrors import nearest_existing
from runtime.store.units import in_words

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
# A model of a hundred million weights and its source.
SMALLEST_DISK_BYTES = 1 << 30


def doctor(args: dict[str, Any], ctx: JobContext) -> dict[str, Any]:
    """The report behind `doctor --json`; cannot fail on a missing device.

    Speeds are measured unless `args` say `measure: false`. Progress "measure" carries the report as far as it
    is known.
    """
    report = _look()
    if args.get("measure", True):
        _measure(report, ctx)
    return report


def _look() -> dict[str, Any]:
    return {
        "devices": [
            {**machine.cpu(), "instructions": torch.backends.cpu.get_cpu_capability()},
            *gpus.found(),
        ],
        "memory": {**machine.memory(), "engine_bytes": psutil.Process().memory_info().rss},
        "disk": machine.disk(),
        "answering": _answering_kind(),
        "checks": [_home_check(), _disk_check(), _device_check(), _compiler_check(), _hub_check()],
        "versions": _versions(),
        "paths": _paths(),
        "sizes": {f"{name}_bytes": _size(path) for name, path in _folders().items()},
        "removal": removal(),
    }


def _measure(report: dict[str, Any], ctx: JobContext) -> None:
    """Add the speeds that answers hang on: of the GPU that answers and its link, else of the processor.

    What cannot be measured, on a full GPU for one, is left out.
    """
    kind: str = report["answering"]
    measured = _cpu_speeds() if kind == "cpu" else _gpu_speeds(int(kind.removeprefix("cuda:")))
    entry: dict[str, Any] = next((each for each in report["devices"] if each["kind"] == kind), {})
    ctx.progress("measure", 0, 1, "devices", data={"report": report})
    with contextlib.suppress(RuntimeError):
        for name, gb_s in measured:
            entry[name] = round(gb_s, 2)
            ctx.progress("measure", 0, 1, "devices", data={"report": report})
    ctx.progress("measure", 1, 1, "devices")


def _cpu_speeds() -> Iterator[tuple[str, float]]:
    rates = bandwidth.cpu_rates()
    yield from (("memory_gb_s", rates.memory), ("int4_gb_s", rates.int4), ("int8_gb_s", rates.int8))


def _gpu_speeds(index: int) -> Iterator[tuple[str, float]]:
    yield "link_gb_s", bandwidth.link_gb_s(index)
    yield "memory_gb_s", bandwidth.gpu_gb_s(index)


def _answering_kind() -> str:
    """The device that answers come from; the CPU too where a GPU is asked for that cannot."""
    try:
        index = devices.answering_gpu()
    except DecdecError:
        index = None
    return "cpu" if index is None else f"cuda:{index}"


def _compiler_check() -> dict[str, Any]:
    """Triton builds a small launcher with the system's C compiler on first use; only GPUs need it."""
    if why := devices.why_no_kernels():
        return _check("Triton", False, f"{why} (for GPUs only)")
    return _check("Triton", True, f"with {devices.compiler()}")


def _home_check() -> dict[str, Any]:
    folder = nearest_existing(locations.home())
    name = "folder"
    if not os.access(folder, os.W_OK | os.X_OK):
        return _check(name, False, f"{folder} cannot be written; set DECDEC_HOME to another folder")
    return {**_check(name, True, str(locations.home())), "free_bytes": shutil.disk_usage(folder).free}


def _disk_check() -> dict[str, Any]:
    free = machine.disk().get("free_bytes", 0)
    note = f"{in_words(free)} free in {locations.models()}"
    fix = "free some space, or set DECDEC_HOME to a folder on a larger disk"
    return _check("disk space", free >= SMALLEST_DISK_BYTES, note, fix)


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
    token = "an" if os.environ.get("HF_TOKEN") else "no"
    return _check("model hub", None, f"{where}, not checked; {token} access token for gated models")


def _check(name: str, ok: bool | None, note: str, fix: str = "") -> dict[str, Any]:
    """`ok`: None where nothing was tried. `fix`: what to do about a bad one whose note does not say it."""
    return {"name": name, "ok": ok, "note": note} | ({"fix": fix} if fix and ok is False else {})


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
    return {name: str(path) for name, path in folders.items()} | _own_files()


def _own_files() -> dict[str, str]:
    return {"settings": str(locations.settings_file()), "conversations": str(locations.history_file())}


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
