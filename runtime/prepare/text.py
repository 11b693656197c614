"""The text side of a model being prepared: tokenizer, chat template, special tokens."""

from __future__ import annotations

from pathlib import Path

from runtime.checkpoint import Checkpoint, tokenizer_files
from runtime.errors import DecdecError
from runtime.text.template import ChatTemplate
from runtime.text.tokenizer import Tokenizer

# A little of everything that patterns cut texts at.
TRIAL = "Hello, it's 12345 words:\n\n\tnaïve Straße, 東京 😀 " + "a" * 40 + " " * 40 + "!\r\n"


def write_text(checkpoint: Checkpoint, folder: Path) -> None:
    """Write the tokenizer files into `folder` and try them: a model that could not chat is refused now,
    not after all its weights are encoded. Raises DecdecError, with none of the files left.
    """
    checkpoint.write_tokenizer(folder)
    try:
        Tokenizer.from_folder(folder).encode(TRIAL)
        ChatTemplate.from_folder(folder)
    except DecdecError as error:
        for name in tokenizer_files.ALL:
            (folder / name).unlink(missing_ok=True)
        raise DecdecError(
            "The model's tokenizer or chat template cannot be used",
            f"{error.what}: {error.why}".replace(f"{folder}/", ""),
            "download the model again, or choose another",
        ) from error
