"""Names of a model's special tokens, as chat templates know them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from runtime.text import files

ROLES = ("bos_token", "eos_token", "unk_token", "pad_token", "sep_token", "cls_token")


def special_tokens(folder: Path) -> dict[str, str]:
    """`bos_token`, `eos_token`, … as far as tokenizer_config.json or special_tokens_map.json name them."""
    config = files.read_object(folder / "special_tokens_map.json")
    config |= files.read_object(folder / "tokenizer_config.json")
    named = {role: _content(config.get(role)) for role in ROLES}
    return {role: content for role, content in named.items() if content is not None}


def _content(entry: Any) -> str | None:
    content = entry.get("content") if isinstance(entry, dict) else entry
    return content if isinstance(content, str) else None
