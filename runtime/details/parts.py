"""Bytes of a prepared model by what they are for. Light by contract: imported by the front end."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

from runtime.store import manifest
from runtime.store.records import ModelRecord

INT8X, CALIBRATION, TEXT = "INT8-X", "calibration", "tokenizer and settings"


def parts(record: ModelRecord) -> dict[str, int]:
    """Bytes by part: the lossless form, every base with its residuals, the rest; DecdecError if damaged."""
    files = manifest.read(record.path).files
    return by_part({name: entry.bytes for name, entry in files.items()})


def by_part(files: Mapping[str, int]) -> dict[str, int]:
    """Sums of the sizes of files, given by POSIX path inside a model's folder; largest parts first."""
    sums: dict[str, int] = {}
    for name, size in files.items():
        part = _part(PurePosixPath(name))
        sums[part] = sums.get(part, 0) + size
    return dict(sorted(sums.items(), key=lambda item: -item[1]))


def base_part(base: str) -> str:
    """The part that a base is listed as."""
    return f"base {base}"


def _part(path: PurePosixPath) -> str:
    top = path.parts[0]
    if len(path.parts) == 1:
        return INT8X if path.name.endswith((".safetensors", ".safetensors.index.json")) else TEXT
    if top.startswith("base-"):
        return base_part(top.removeprefix("base-"))
    return CALIBRATION if top == "calibration" else TEXT
