"""From what a model's maker wrote down back to its source, and to what was downloaded for it."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from runtime.errors import DecdecError
from runtime.sources import catalogue
from runtime.sources.base import Source
from runtime.sources.kept import kept_folder
from runtime.sources.resolve import resolve


def source_of(name: str, record: Mapping[str, Any]) -> str:
    """What to prepare a model of this record from again, as a person would type it; empty where unknown."""
    kind = record.get("kind")
    if kind == "hub":
        return str(record.get("repo", ""))
    if kind in ("folder", "gguf"):
        return str(record.get("path", ""))
    entry = catalogue.find(name)
    return entry.name if entry else ""


def source_again(name: str | None, source: str) -> Source:
    """What `resolve` gives; DecdecError that says what to do when the path that a model of ours came from
    is gone.
    """
    path = Path(source)
    if name and path.is_absolute() and not path.exists():
        raise DecdecError(
            f"The model {name} cannot be made again",
            f"{source}, which it was made from, is not there",
            f"put it back, or run decdec-chat import PATH --name {name} with another path",
        )
    return resolve(source)


def kept_of(record: Mapping[str, Any]) -> Path | None:
    """The folder of ours that holds what was downloaded; None where nothing of ours is there."""
    kind, folder = record.get("kind"), None
    # Of a name that no folder may have nothing was kept.
    with contextlib.suppress(DecdecError):
        if kind == "hub" and record.get("repo"):
            folder = kept_folder("hub", str(record["repo"]))
        elif kind == "wheel" and record.get("package"):
            folder = kept_folder("wheel", f"{record['package']}-{record.get('version')}")
    return folder if folder and folder.is_dir() else None
