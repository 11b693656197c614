"""Which reader a path needs."""

from __future__ import annotations

from pathlib import Path

from runtime.checkpoint.base import Checkpoint
from runtime.checkpoint.folder import FolderCheckpoint
from runtime.checkpoint.gguf_checkpoint import GgufCheckpoint
from runtime.errors import DecdecError

HELP = "give a folder in Hugging Face layout or a .gguf file"


def open_checkpoint(path: Path) -> Checkpoint:
    """The checkpoint at `path`: a Hugging Face folder, a .gguf file, or a folder that holds one .gguf file.

    Headers are validated before this returns; tensors are read by `load`. Raises DecdecError.
    """
    if path.is_dir():
        return _open_folder(path)
    if path.suffix.lower() == ".gguf":
        return GgufCheckpoint(path)
    if not path.exists():
        raise DecdecError(f"{path} cannot be opened", "there is no such file or folder", "check the path")
    raise DecdecError(f"{path} cannot be opened", "it is neither a folder nor a .gguf file", HELP)


def _open_folder(folder: Path) -> Checkpoint:
    if (folder / "config.json").exists():
        return FolderCheckpoint(folder)
    files = sorted(folder.glob("*.gguf"))
    if len(files) == 1:
        return GgufCheckpoint(files[0])
    held = f"there is no config.json and {len(files)} .gguf files" if files else "there is no config.json"
    raise DecdecError(f"{folder} is no model", held, HELP)
