"""Where the parts of one model lie below the models folder."""

from __future__ import annotations

from pathlib import Path

from runtime import locations
from runtime.store import manifest

# What a model's files were made from.
IDENTITY = ".identity.json"
_STAGING, _OLD, _REMOVED, _QUARANTINE = ".staging-", ".old-", ".removed-", ".quarantine"


def final(name: str) -> Path:
    """The whole, published model."""
    return locations.models() / name


def staging(name: str) -> Path:
    """The model being made; outlives an interruption, so that the next start continues."""
    return locations.models() / f"{_STAGING}{name}"


def old(name: str) -> Path:
    """The former model for the moment in which a new one takes its place."""
    return locations.models() / f"{_OLD}{name}"


def removed(name: str) -> Path:
    """A deleted model until its files are gone."""
    return locations.models() / f"{_REMOVED}{name}"


def quarantine(name: str) -> Path:
    """Damaged files, moved out of the way until the model is whole again."""
    return locations.models() / _QUARANTINE / name


def all_of(name: str) -> tuple[Path, ...]:
    """Every folder that may hold something of a model."""
    return final(name), staging(name), old(name), removed(name), quarantine(name)


def unsettled() -> set[str]:
    """Names of models whose replacement or removal goes on, or was cut in two."""
    prefixes = (_OLD, _REMOVED)
    return {
        folder.name.removeprefix(prefix)
        for folder in _folders()
        for prefix in prefixes
        if folder.name.startswith(prefix)
    }


def published() -> list[Path]:
    """Folders that may hold a published model."""
    return [folder for folder in _folders() if not folder.name.startswith(".")]


def names() -> set[str]:
    """Names of all models that are there, whole or not."""
    return {
        folder.name.removeprefix(_STAGING)
        for folder in _folders()
        if not folder.name.startswith(".") or folder.name.startswith(_STAGING)
    }


def is_ours(folder: Path) -> bool:
    """Whether this program made a folder below the models folder: a chosen home may hold others."""
    if folder.name.startswith((_STAGING, _OLD, _REMOVED)) or folder.name == _QUARANTINE:
        return True
    try:
        return any((folder / mark).exists() for mark in (IDENTITY, manifest.FILE_NAME))
    except OSError:
        # What cannot be looked into cannot be told to be ours, and is no reason to list nothing.
        return False


def identity(folder: Path) -> bytes:
    """What a model's files were made from, as its maker wrote it; nothing where that is no regular file."""
    path = folder / IDENTITY
    return path.read_bytes() if path.is_file() else b""


def _folders() -> list[Path]:
    try:
        return [path for path in locations.models().iterdir() if path.is_dir() and is_ours(path)]
    except (FileNotFoundError, NotADirectoryError):
        return []
