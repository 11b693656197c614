"""Plain text to token ids, with the tokenizer that a checkpoint carries."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from tokenizers import Tokenizer

from runtime.checkpoint import Checkpoint

Encode = Callable[[str], list[int]]


def encoder(checkpoint: Checkpoint) -> Encode:
    """Text to token ids without special tokens around them."""
    with tempfile.TemporaryDirectory(prefix="decdec-") as folder:
        checkpoint.write_tokenizer(Path(folder))
        tokenizer = Tokenizer.from_file(str(Path(folder) / "tokenizer.json"))

    def encode(text: str) -> list[int]:
        ids: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    return encode
