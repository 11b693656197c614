"""Models that are already on this machine: a folder in Hugging Face layout, or a GGUF file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runtime.errors import DecdecError
from runtime.progress import JobContext
from runtime.sources import layout
from runtime.store.names import slug
from runtime.store.oserrors import translated

_GGUF_MAGIC = b"GGUF"


@dataclass(frozen=True, slots=True)
class FolderSource:
    """A local folder in Hugging Face layout."""

    path: Path
    download_bytes: int = 0

    @property
    def name(self) -> str:
        """The folder's name as a slug."""
        return slug(self.path.name)

    @property
    def label(self) -> str:
        """The path."""
        return str(self.path)

    @property
    def record(self) -> dict[str, Any]:
        """Kind and path."""
        return {"kind": "folder", "source": f"folder {self.path}", "path": str(self.path)}

    def fetch(self, ctx: JobContext) -> Path:
        """The folder itself, after a look at its files."""
        ctx.check()
        layout.check_folder(self.path)
        return self.path

    def discard(self) -> int:
        """Nothing: the folder is the user's."""
        return 0


@dataclass(frozen=True, slots=True)
class GgufSource:
    """A local GGUF file."""

    path: Path
    download_bytes: int = 0

    @property
    def name(self) -> str:
        """The file's name without its extension, as a slug."""
        return slug(self.path.stem)

    @property
    def label(self) -> str:
        """The path."""
        return str(self.path)

    @property
    def record(self) -> dict[str, Any]:
        """Kind, path, and size and time of the file, so that another file in its place is noticed."""
        with translated(self.path, f"Reading {self.path.name}"):
            stat = self.path.stat()
        state = {"bytes": stat.st_size, "modified_ns": stat.st_mtime_ns}
        return {"kind": "gguf", "source": f"gguf {self.path}", "path": str(self.path), **state}

    def fetch(self, ctx: JobContext) -> Path:
        """The file itself, after a look at its first bytes."""
        ctx.check()
        layout.reject_lfs_pointer(self.path)
        if layout.head_of(self.path, len(_GGUF_MAGIC)) != _GGUF_MAGIC:
            raise DecdecError(
                f"{self.path} is not a GGUF file", "its first bytes are not GGUF", "download it again"
            )
        return self.path

    def discard(self) -> int:
        """Nothing: the file is the user's."""
        return 0
