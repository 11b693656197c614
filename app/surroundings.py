"""What a doctor's report says about the room for a model and about the speed of its answers."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from runtime import device as devices
from runtime.errors import DecdecError
from runtime.sources.fit import Room
from runtime.sources.speed import CpuRates, GpuRates, Rates

# What the engine's process takes without any model.
BARE_ENGINE_BYTES = 400 << 20


class _Device(msgspec.Struct, frozen=True):
    kind: str = ""
    free_bytes: int | None = None
    memory_gb_s: float | None = None
    int4_gb_s: float | None = None
    int8_gb_s: float | None = None


class _Memory(msgspec.Struct, frozen=True):
    available_bytes: int
    pinnable_bytes: int | None = None
    engine_bytes: int = 0


class _Disk(msgspec.Struct, frozen=True):
    free_bytes: int | None = None


class _Report(msgspec.Struct, frozen=True):
    memory: _Memory
    devices: list[_Device] = []
    disk: _Disk = _Disk()
    answering: str = "cpu"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """rates: None until measured. gpu: whether answers come from one."""

    room: Room
    rates: Rates | None
    gpu: bool


def surroundings(report: Mapping[str, Any]) -> Surroundings | None:
    """None where the report does not say enough."""
    try:
        found = msgspec.convert(report, _Report)
    except msgspec.ValidationError:
        return None
    device = next((each for each in found.devices if each.kind == found.answering), _Device())
    if found.answering == "cpu":
        return Surroundings(Room(None, _host(found.memory), found.disk.free_bytes), _cpu_rates(device), False)
    if device.free_bytes is None:
        return None
    room = Room(device.free_bytes, _host(found.memory, pinned=True), found.disk.free_bytes)
    rates = GpuRates(device.memory_gb_s) if device.memory_gb_s else None
    return Surroundings(room, rates, True)


def room(report: Mapping[str, Any]) -> Room | None:
    """The room for a model by a report of any age; None where it does not say enough.

    A GPU whose memory nobody has looked at yet counts as large enough for the best form.
    """
    answering = next(
        (each for each in report.get("devices", ()) if str(each.get("kind")).startswith("cuda:")), None
    )
    if "answering" not in report and answering and not _cpu_is_wanted():
        report = {
            **report,
            "answering": answering["kind"],
            "devices": [{"free_bytes": sys.maxsize, **answering}],
        }
    around = surroundings(report)
    return around.room if around else None


def _cpu_is_wanted() -> bool:
    try:
        return devices.wanted() == devices.CPU
    except DecdecError:
        return False


def _host(memory: _Memory, pinned: bool = False) -> int:
    """Free host memory; a model that is loaded now will give way to the next one."""
    free = memory.pinnable_bytes if pinned and memory.pinnable_bytes is not None else memory.available_bytes
    return free + max(0, memory.engine_bytes - BARE_ENGINE_BYTES)


def _cpu_rates(device: _Device) -> CpuRates | None:
    if not device.int4_gb_s or not device.int8_gb_s:
        return None
    return CpuRates(device.int4_gb_s, device.int8_gb_s)
