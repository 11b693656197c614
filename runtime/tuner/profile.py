"""Tuning profiles on disk: one JSON file per model and base, valid only on the machine it was measured on."""

from __future__ import annotations

import os
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated

import msgspec
import torch

from kernels.dec.chunks import CHUNK
from runtime.machine import driver_version, processor_name
from runtime.protocol.events import SlowdownPoint
from runtime.store.atomic import write_json
from runtime.tuner.files import CPU, profile_path
from runtime.tuner.measurer import Launch
from runtime.tuner.verify import Detent

FORMAT = 1
MAX_BYTES = 1 << 20
Microseconds = Annotated[float, msgspec.Meta(gt=0)]


class Machine(msgspec.Struct, frozen=True):
    """What a profile depends on; a change of any of it makes the profile worthless."""

    device: str
    processor: str
    threads: int
    torch: str
    numba: str
    app: str
    driver: str = ""
    triton: str = ""

    @classmethod
    def here(cls) -> Machine:
        """This process's machine, for answers from its CPU."""
        return cls(
            device=CPU,
            processor=processor_name(),
            threads=torch.get_num_threads(),
            torch=str(torch.__version__),
            numba=_version("numba"),
            app=_version("decdec-chat"),
        )

    @classmethod
    def with_gpu(cls, index: int) -> Machine:
        """This process's machine, for answers from a CUDA device. The GPU's time depends on no thread."""
        return cls(
            device=f"cuda:{index}",
            processor=torch.cuda.get_device_name(index),
            threads=0,
            torch=str(torch.__version__),
            numba=_version("numba"),
            app=_version("decdec-chat"),
            driver=driver_version(),
            triton=_version("triton"),
        )


class Profile(msgspec.Struct, frozen=True):
    """What tuning found: base time per linear kind in microseconds, and the slider's path.

    launches: how every kind fetches, on a GPU. detents: tables there, as predicted and as measured together.
    link_gb_s: what the GPU read from page-locked host memory.
    """

    model: str
    base: str
    machine: Machine
    base_us: dict[str, Microseconds]
    path: tuple[SlowdownPoint, ...]
    launches: dict[str, Launch] = {}
    detents: tuple[Detent, ...] = ()
    link_gb_s: float | None = None
    format: int = FORMAT

    @property
    def n_tb(self) -> dict[str, int]:
        """Fetch programs by kind, on a GPU."""
        return {kind: launch.programs for kind, launch in self.launches.items()}

    def __post_init__(self) -> None:
        starts = [point.slowdown_pct for point in self.path]
        if not starts or starts[0] != 0 or starts != sorted(starts):
            raise ValueError("the path must begin at 0 and ascend")
        tables = [point.k_chunk for point in self.path] + [detent.k_chunk for detent in self.detents]
        if not all(0 <= k <= CHUNK for table in tables for k in msgspec.structs.astuple(table)):
            raise ValueError(f"a table corrects 0 to {CHUNK} channels of {CHUNK}")


def write_profile(profile: Profile) -> Path:
    """Store a profile in place of an older one; gives the file."""
    path = profile_path(profile.model, profile.base, profile.machine.device)
    write_json(path, profile)
    return path


def read_profile(model: str, base: str, machine: Machine | None = None) -> tuple[Profile | None, str]:
    """The profile valid on `machine` (this one's CPU unless told), or None and the reason in words.

    A damaged file is moved aside (`.bad`).
    """
    machine = machine if machine is not None else Machine.here()
    path = profile_path(model, base, machine.device)
    try:
        if path.stat().st_size > MAX_BYTES:
            return None, _set_aside(path)
        profile = msgspec.json.decode(path.read_bytes(), type=Profile)
    except FileNotFoundError:
        return None, f"{model} was not tuned on this machine yet"
    except OSError as error:
        return None, f"the tuning profile cannot be read ({error.strerror})"
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None, _set_aside(path)
    if (profile.format, profile.model, profile.base) != (FORMAT, model, base):
        return None, _set_aside(path)
    changed = _difference(profile.machine, machine)
    return (None, f"since the last tuning {changed}") if changed else (profile, "")


def _difference(then: Machine, now: Machine) -> str:
    for name in Machine.__struct_fields__:
        old, new = getattr(then, name), getattr(now, name)
        if old != new:
            return f"{name} changed from {old} to {new}"
    return ""


def _set_aside(path: Path) -> str:
    try:
        os.replace(path, path.with_suffix(".json.bad"))
    except OSError:
        return "the tuning profile is damaged"
    return f"the tuning profile was damaged and is kept as {path.name}.bad"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"
