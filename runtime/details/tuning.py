"""The tuning profiles of a model, with what they say at the slider's detents and whether they still hold."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from runtime import devices
from runtime.tuner import search
from runtime.tuner.files import CPU, profile_files
from runtime.tuner.profile import Machine, Profile, read_profile


def profiles_of(model: str, bases: Iterable[str]) -> list[dict[str, Any]]:
    """One entry a profile: base, device, processor, day, k_chunk at the detents, and `why_not` it is used."""
    return [
        entry
        for base in bases
        for device, path in profile_files(model, base).items()
        if (entry := _entry(model, base, device, path)) is not None
    ]


def _entry(model: str, base: str, device: str, path: Path) -> dict[str, Any] | None:
    """None for a file that is no profile."""
    try:
        day = time.strftime("%Y-%m-%d", time.localtime(path.stat().st_mtime))
        profile = msgspec.json.decode(path.read_bytes(), type=Profile)
    except (OSError, msgspec.DecodeError, ValueError, RecursionError):
        return None
    detents = {f"{pct:g}": msgspec.to_builtins(search.at(profile.path, pct)) for pct in search.DETENTS}
    return {
        "base": base,
        "device": device,
        "processor": profile.machine.processor,
        "day": day,
        "detents": detents,
        "why_not": _why_not(model, base, device),
    }


def _why_not(model: str, base: str, device: str) -> str:
    """Why the profile of a device is not used now; empty where it is."""
    if device == CPU:
        return read_profile(model, base, Machine.here())[1]
    index = int(device.partition(":")[2])
    why = devices.why_no_cuda() or devices.why_not(index)
    return why or read_profile(model, base, Machine.with_gpu(index))[1]
