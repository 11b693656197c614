"""From what a person typed to a source."""

from __future__ import annotations

import re
from pathlib import Path

from runtime.errors import DecdecError
from runtime.sources import catalogue
from runtime.sources.base import Source
from runtime.sources.catalogue import CatalogueEntry, WheelOrigin
from runtime.sources.hub import HubSource
from runtime.sources.local import FolderSource, GgufSource
from runtime.sources.wheel import WheelSource
from runtime.store.names import offer, slug

_REPO = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*")
_LOOKS_LIKE_PATH = re.compile(r"^(~|\.{0,2}[/\\]|[A-Za-z]:[/\\])|\.gguf$", re.IGNORECASE)


def resolve(name_or_path: str) -> Source:
    """The source a name stands for: a path that exists, a catalogue name, a hub repository "owner/name".

    Touches no network. Raises DecdecError with near names when it is none of them.
    """
    local = _local(name_or_path)
    if local is not None:
        return local
    entry = catalogue.find(name_or_path)
    if entry is not None:
        return of_entry(entry)
    if _REPO.fullmatch(name_or_path):
        return HubSource(slug(name_or_path), f"{name_or_path} from the hub", name_or_path)
    fix = offer(catalogue.suggest(name_or_path))
    raise DecdecError(
        f"There is no model {name_or_path!r}",
        "it is neither a path, nor in the catalogue, nor a hub repository (owner/name)",
        fix or "run decdec-chat models --catalogue to see the known names",
    )


def of_entry(entry: CatalogueEntry) -> Source:
    """The source of a catalogue entry."""
    if isinstance(entry.origin, WheelOrigin):
        return WheelSource(entry.name, entry.label, entry.origin, entry.licence)
    return HubSource(entry.name, entry.label, entry.origin.repo, entry.licence, entry.download_bytes)


def _local(text: str) -> Source | None:
    """A folder or file; a folder that only happens to have a model's name is none unless it holds a model."""
    try:
        path = Path(text).expanduser()
        is_folder, is_file = path.is_dir(), path.is_file()
    except (OSError, ValueError, RuntimeError):
        return None
    if is_folder and text.strip() and (_LOOKS_LIKE_PATH.search(text) or (path / "config.json").is_file()):
        return FolderSource(path.resolve())
    if is_file:
        return _file(path.resolve())
    if _LOOKS_LIKE_PATH.search(text):
        raise DecdecError(f"There is no file or folder {text}", "", "check the path")
    return None


def _file(path: Path) -> Source:
    if path.suffix.lower() == ".gguf":
        return GgufSource(path)
    raise DecdecError(
        f"{path} is not a model", "a file must be a .gguf", "give a .gguf file or a model's folder"
    )
