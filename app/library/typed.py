"""What is meant by what was typed or pasted into the search: a path to import, or words to look for."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from runtime.sources import resolve

_LOOKS_LIKE_PATH = re.compile(r"^(~|/|\.{1,2}[/\\]|\\\\|[A-Za-z]:[/\\])|\.gguf$", re.IGNORECASE)
_WINDOWS = os.name == "nt"
_DRIVE_OR_SHARE = re.compile(r"[A-Za-z]:[/\\]|\\\\")


@dataclass(frozen=True, slots=True)
class Import:
    """A folder or file of this machine. `name`: what it will be called."""

    path: str
    name: str


@dataclass(frozen=True, slots=True)
class Search:
    """Words for a hub."""

    words: str


def meaning(text: str) -> Import | Search | None:
    """None for nothing. Raises DecdecError for a path that is none, or holds no model."""
    path = as_path(text)
    if not path:
        return None
    if _LOOKS_LIKE_PATH.search(path) or _is_model_folder(path):
        source = resolve(path)
        return Import(source.label, source.name)
    return Search(text.strip())


def looks_like_path(text: str) -> bool:
    """Whether Enter would import."""
    return _LOOKS_LIKE_PATH.search(as_path(text)) is not None


def as_path(text: str) -> str:
    """A path as terminals paste it: without quotes, file:// and backslashes before blanks."""
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        text = text[1:-1]
    if text.lower().startswith("file://"):
        return _of_url(text)
    # Only shells of POSIX put backslashes before blanks; in a path of Windows they stand between folders.
    if _WINDOWS or _DRIVE_OR_SHARE.match(text):
        return text
    return re.sub(r"\\(?=[ ()'\"&])", "", text)


def _of_url(text: str) -> str:
    """The path in a file:// address; what is none yet, as while it is being typed, stays as it is."""
    try:
        path = unquote(urlsplit(text).path)
    except ValueError:
        return text
    return path[1:] if _WINDOWS and _DRIVE_OR_SHARE.match(path[1:]) else path


def _is_model_folder(path: str) -> bool:
    try:
        return (Path(path) / "config.json").is_file()
    except (OSError, ValueError):
        return False
