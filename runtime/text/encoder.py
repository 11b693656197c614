"""Plain text to token ids, with the tokenizer that a checkpoint carries."""

from __future__ import annotations

from collections.abc import Callable

from runtime.checkpoint import Checkpoint
from runtime.store.temporary import temporary_folder
from runtime.text import files
from runtime.text.backend import Backend

Encode = Callable[[str], list[int]]


def encoder(checkpoint: Checkpoint) -> Encode:
    """Text to token ids without special tokens around them; DecdecError where its tokenizer is unusable."""
    with temporary_folder() as folder:
        checkpoint.write_tokenizer(folder)
        path = folder / "tokenizer.json"
        return Backend(files.read_bytes(path).decode("utf-8", errors="replace"), path).encode
