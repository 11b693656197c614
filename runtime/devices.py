"""The device that answers: the one that was asked for, else the first GPU that can, else the CPU."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys

import torch

from runtime import device

# What the kernels are compiled for: Ampere and later.
CAPABILITY = (8, 0)


def answering_gpu() -> int | None:
    """The number of the CUDA device that answers, None for the CPU.

    Raises DecdecError where a GPU is asked for by name and cannot be used: nothing else answers in its place.
    """
    if device.wanted() == device.CPU:
        return None
    index, why = device.wanted_gpu(), why_no_cuda() or why_no_kernels()
    if index is None:
        return None if why else first_usable()
    if why := why or why_not(index):
        raise device.refused(why)
    return index


def why_cpu() -> str:
    """Why the CPU answers although there is NVIDIA's driver; empty where that was asked for."""
    if device.wanted() == device.CPU or not device.driver_present():
        return ""
    return why_no_cuda() or why_no_kernels() or why_not(0)


def first_usable() -> int | None:
    """The first CUDA device that kernels can be compiled for."""
    return next((index for index in range(torch.cuda.device_count()) if not why_not(index)), None)


def label(index: int | None) -> str:
    """The device as shown to people: no silent fall-back."""
    if index is None:
        return f"CPU ({torch.get_num_threads()} threads)"
    return f"{torch.cuda.get_device_name(index)} (cuda:{index})"


def why_no_cuda() -> str:
    """Why torch finds no CUDA device; empty where it does."""
    if sys.platform == "darwin":
        return "macOS has no NVIDIA driver"
    driver = device.driver_present()
    if torch.version.cuda is None:
        built = f"this torch ({torch.__version__}) was built without CUDA"
        return f"{built}; install a CUDA build of it" if driver else f"{device.NO_DRIVER}, and {built}"
    if not torch.cuda.is_available():
        old = f"the driver is too old for CUDA {torch.version.cuda}, or no device is visible to this process"
        return old if driver else device.NO_DRIVER
    return ""


def why_no_kernels() -> str:
    """Why no kernel can be compiled for a GPU; empty where it can."""
    if importlib.util.find_spec("triton") is None:
        return "triton is not installed"
    return "" if compiler() else "triton finds no C compiler; install gcc or set CC"


def compiler() -> str:
    """The C compiler that triton builds its launchers with on first use; empty where there is none."""
    if sys.platform == "win32":
        return "its own compiler"
    return os.environ.get("CC") or next(filter(shutil.which, ("gcc", "clang")), "")


def why_not(index: int) -> str:
    """Why the CUDA device of this number cannot be used; empty where it can."""
    count = torch.cuda.device_count()
    if index >= count:
        return f"there are {count} GPUs, numbered from 0" if count > 1 else "there is one GPU, cuda:0"
    found = torch.cuda.get_device_capability(index)
    if found >= CAPABILITY:
        return ""
    return f"its compute capability is {found[0]}.{found[1]} and {CAPABILITY[0]}.{CAPABILITY[1]} is needed"
