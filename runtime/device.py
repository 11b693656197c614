"""What DECDEC_DEVICE asks for, and no silent fall-back from it. Light by contract: torch is not asked here.

Which device answers in the end is found out where the model is loaded, by `runtime.devices`.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from runtime.errors import DecdecError, MachineLimit

VARIABLE = "DECDEC_DEVICE"
# What may be asked for, beside "cuda:N".
AUTOMATIC, CPU = "", "cpu"
NO_DRIVER = "no NVIDIA driver was found"
_FIX = f"unset {VARIABLE}, or set it to cpu, or choose another device in the settings"
_DRIVER_FILES = ("/proc/driver/nvidia/version", "/usr/lib/wsl/lib/nvidia-smi")


def understood(text: str) -> str | None:
    """What a text asks for: AUTOMATIC (a GPU that can, else the CPU), CPU or "cuda:N"; None: neither."""
    name = text.strip().lower()
    if name in (AUTOMATIC, "auto"):
        return AUTOMATIC
    if name == CPU:
        return CPU
    found = re.fullmatch(r"cuda(?::(\d{1,3}))?", name)
    return f"cuda:{int(found[1] or 0)}" if found else None


def wanted() -> str:
    """What is asked for, as `understood` says it. DecdecError for anything else."""
    text = os.environ.get(VARIABLE, "")
    name = understood(text)
    if name is None:
        raise DecdecError(f"{VARIABLE} is {text!r}", "known are cpu, cuda and cuda:N", _FIX)
    return name


def wanted_gpu() -> int | None:
    """The number of the CUDA device that is asked for by name; None where none is."""
    name = wanted()
    return int(name.removeprefix("cuda:")) if name.startswith("cuda:") else None


def require_wanted() -> None:
    """Raise DecdecError for a device that is not known, and for a GPU where there is not even a driver."""
    if wanted_gpu() is not None and not driver_present():
        raise refused(NO_DRIVER)


def refused(why: str) -> MachineLimit:
    """The error for the device that was asked for and cannot answer."""
    return MachineLimit(
        f"The device {wanted()} cannot be used", why, f"{_FIX}; decdec-chat doctor shows devices"
    )


def driver_present() -> bool:
    """Whether this system has NVIDIA's driver."""
    return any(Path(file).exists() for file in _DRIVER_FILES) or shutil.which("nvidia-smi") is not None


def gpu_count() -> int:
    """How many GPUs NVIDIA's driver names; 1 where there is a driver that names none here, 0 without one."""
    try:
        return len(list(Path("/proc/driver/nvidia/gpus").iterdir()))
    except OSError:
        return int(driver_present())
