"""What every source of a model looks like."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from runtime.progress import JobContext


class Source(Protocol):
    """One model somewhere outside the store."""

    @property
    def name(self) -> str:
        """The model's name in the store: a safe slug."""
        ...

    @property
    def label(self) -> str:
        """A line for people."""
        ...

    @property
    def record(self) -> dict[str, Any]:
        """JSON identity for the manifest; `kind` and `source` (for people) are always there."""
        ...

    @property
    def download_bytes(self) -> int:
        """What fetching costs; 0 when unknown or local."""
        ...

    def fetch(self, ctx: JobContext) -> Path:
        """A local folder in Hugging Face layout or a .gguf file, checked; continues where it stopped.

        Reports progress of the step "download" in bytes. Raises DecdecError, Interrupted.
        """
        ...

    def discard(self) -> int:
        """Delete what `fetch` keeps below the downloads folder, no user's file; gives the bytes freed."""
        ...
