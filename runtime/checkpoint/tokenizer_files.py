"""The tokenizer files of a prepared model, whatever the source was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from runtime.errors import DecdecError
from runtime.store import atomic

TOKENIZER = "tokenizer.json"
TOKENIZER_CONFIG = "tokenizer_config.json"
SPECIAL_TOKENS = "special_tokens_map.json"
GENERATION = "generation_config.json"
TEMPLATE = "chat_template.jinja"
ALL = (TOKENIZER, TOKENIZER_CONFIG, SPECIAL_TOKENS, GENERATION, TEMPLATE)
MAX_TOKENIZER_BYTES = 256 << 20
MAX_TEMPLATE_BYTES = 1 << 20


def write_file(folder: Path, name: str, data: bytes) -> None:
    """One file of the folder, which is made if it is not there.

    By rename: the file in its place may be a second name of a published model's.
    """
    atomic.write_bytes(folder / name, data)


def write_object(folder: Path, name: str, value: dict[str, Any]) -> None:
    """A JSON object as a file of the folder."""
    write_file(folder, name, json.dumps(value, indent=2).encode() + b"\n")


def write_template(folder: Path, template: str | None) -> None:
    """The chat template, where the source has one."""
    if template is None:
        return
    data = template.encode(errors="replace")
    if len(data) > MAX_TEMPLATE_BYTES:
        raise DecdecError(
            "The chat template cannot be used",
            f"it has {len(data)} bytes, at most {MAX_TEMPLATE_BYTES} make sense",
        )
    write_file(folder, TEMPLATE, data)
