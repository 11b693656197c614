"""The machine in a few rows, as the wizard shows it first: what is known, and what is being measured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from app import format
from app.hardware import Row, item
from app.text import one_line

MEASURING = "measuring…"
# Checks that are not worth a row while they are well.
_QUIET = frozenset({"folder", "disk space"})
Fields = dict[str, Any]


def card(report: Fields, measured: bool) -> list[Row]:
    """Devices, memory, disk, checks. Until `measured`, speeds that are missing are on their way."""
    found = [row for device in _entries(report, "devices") for row in _device(report, device, measured)]
    found += _memory(report)
    found += _disk(report)
    return found + _checks(report)


def _device(report: Fields, device: Fields, measured: bool) -> Iterator[Row]:
    kind = str(device.get("kind", ""))
    if not kind:
        yield item("devices", device)
    elif kind == "cpu":
        yield _processor(report, device, measured)
    else:
        yield from _gpu(report, device, measured)


def _processor(report: Fields, device: Fields, measured: bool) -> Row:
    parts = [_named(device, "cores", "{} cores"), _named(device, "instructions", "{}")]
    if report.get("answering", "cpu") == "cpu":
        reads, products = _gb_s(device, "memory_gb_s"), _gb_s(device, "int4_gb_s")
        parts.append(f"memory {reads}" if reads else _pending(measured, "memory speed"))
        parts.append(f"4-bit products {products}" if products else "")
    return Row("Processor", _joined(one_line(str(device.get("name", ""))), *parts), True)


def _gpu(report: Fields, device: Fields, measured: bool) -> Iterator[Row]:
    name, ok = one_line(str(device.get("name", "NVIDIA GPU"))), device.get("usable")
    why, fix = one_line(str(device.get("why", ""))), one_line(str(device.get("fix", "")))
    version = [_named(device, "compute_capability", "compute {}"), _named(device, "driver", "driver {}")]
    yield Row("GPU", _joined(name, *version, why), ok if isinstance(ok, bool) else None, fix)
    if not ok:
        return
    answers = report.get("answering") == device["kind"]
    speed = _gb_s(device, "memory_gb_s") or (_pending(measured, "speed") if answers else "")
    yield Row("VRAM", _joined(_total_and_free(device, "memory_bytes", "free_bytes"), speed))
    if answers:
        yield Row("PCIe", _link(device) or _pending(measured, "") or "could not be measured")


def _link(device: Fields) -> str:
    """The link's speed, and how much faster the GPU's own memory is: the slider lives on that ratio."""
    link, memory = device.get("link_gb_s"), device.get("memory_gb_s")
    if not link:
        return ""
    ratio = f"VRAM is {memory / link:.0f} times as fast" if memory else ""
    return _joined(f"{link:.3g} GB/s from page-locked memory", ratio)


def _memory(report: Fields) -> list[Row]:
    memory = report.get("memory")
    if not isinstance(memory, dict):
        return []
    found = [Row("RAM", _total_and_free(memory, "total_bytes", "available_bytes"))]
    pinnable, limit = memory.get("pinnable_bytes"), memory.get("lock_limit_bytes")
    if pinnable is not None:
        locked = f"the limit of {format.size(limit)} (ulimit -l) is for others" if limit else ""
        found.append(Row("Pinning", _joined(f"{format.size(pinnable)} for a GPU to read", locked)))
    return found


def _disk(report: Fields) -> list[Row]:
    disk = report.get("disk")
    if not isinstance(disk, dict) or "free_bytes" not in disk:
        return []
    folder = one_line(str(disk.get("folder", "")))
    return [Row("Disk", _joined(f"{format.size(disk['free_bytes'])} free", folder))]


def _checks(report: Fields) -> list[Row]:
    """What is not well first in the eye: good ones only where they say something new."""
    has_gpu = any(str(device.get("kind")).startswith("cuda:") for device in _entries(report, "devices"))
    rows = [item("checks", check) for check in _entries(report, "checks")]
    shown = (
        row for row in rows if not (row.ok and row.title in _QUIET) and (has_gpu or row.title != "Triton")
    )
    return [replace(row, title=f"{row.title[:1].upper()}{row.title[1:]}") for row in shown]


def _entries(report: Fields, key: str) -> list[Fields]:
    value = report.get(key)
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _total_and_free(fields: Fields, total: str, free: str) -> str:
    parts = [format.size(fields[total])] if total in fields else []
    parts += [f"{format.size(fields[free])} free"] if free in fields else []
    return ", ".join(parts)


def _gb_s(fields: Fields, key: str) -> str:
    return f"{fields[key]:.3g} GB/s" if fields.get(key) else ""


def _named(fields: Fields, key: str, words: str) -> str:
    return words.format(one_line(str(fields[key]))) if fields.get(key) else ""


def _pending(measured: bool, what: str) -> str:
    return "" if measured else f"{what} {MEASURING}".strip()


def _joined(*parts: str) -> str:
    return " · ".join(part for part in parts if part)
