"""From what a model's maker wrote down back to its source, and to what was downloaded for it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from runtime.sources import catalogue
from runtime.sources.kept import kept_folder


def source_of(name: str, record: Mapping[str, Any]) -> str:
    """What to prepare a model of this record from again, as a person would type it; empty where unknown."""
    kind = record.get("kind")
    if kind == "hub":
        return str(record.get("repo", ""))
    if kind in ("folder", "gguf"):
        return str(record.get("path", ""))
    entry = catalogue.find(name)
    return entry.name if entry else ""


def kept_of(record: Mapping[str, Any]) -> Path | None:
    """The folder of ours that holds what was downloaded; None where nothing of ours is there."""
    kind = record.get("kind")
    if kind == "hub" and record.get("repo"):
        folder = kept_folder("hub", str(record["repo"]))
    elif kind == "wheel" and record.get("package"):
        folder = kept_folder("wheel", f"{record['package']}-{record.get('version')}")
    else:
        return None
    return folder if folder.is_dir() else None
