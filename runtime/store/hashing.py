"""SHA-256 of files in pieces, with progress and cancellation left to the caller."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from runtime.store.oserrors import translated

PIECE_BYTES = 1 << 20


def sha256_of(path: Path, on_piece: Callable[[int], None] = lambda count: None) -> str:
    """Hexadecimal SHA-256 of a file; `on_piece` hears the size of each piece read and may raise to stop."""
    digest = hashlib.sha256()
    with translated(path, f"Reading {path.name}"), path.open("rb") as file:
        while piece := file.read(PIECE_BYTES):
            digest.update(piece)
            on_piece(len(piece))
    return digest.hexdigest()
