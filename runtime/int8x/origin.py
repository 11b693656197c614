"""Which source a model was coded from, without keeping its path."""

from __future__ import annotations

import hashlib
from pathlib import Path

from runtime.store.oserrors import translated


def fingerprint(source: Path) -> str:
    """A short hash of a source's weight files (path, size, time of change); changes when any of them does."""
    with translated(source, f"Reading {source}"):
        files = sorted(source.glob("*.safetensors")) or sorted(source.glob("*.gguf")) or [source]
        states = [(str(file.resolve()), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    return hashlib.sha256(repr(states).encode()).hexdigest()[:32]
