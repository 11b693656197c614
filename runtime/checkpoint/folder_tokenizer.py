"""Tokenizer files of a Hugging Face folder, copied one by one: plain data of bounded size, no code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from runtime.checkpoint.files import damaged, parse_object, read_bounded, read_object
from runtime.checkpoint.tokenizer_files import (
    GENERATION,
    MAX_TEMPLATE_BYTES,
    MAX_TOKENIZER_BYTES,
    SPECIAL_TOKENS,
    TEMPLATE,
    TOKENIZER,
    TOKENIZER_CONFIG,
    write_file,
    write_object,
    write_template,
)
from runtime.errors import DecdecError

MAX_SETTINGS_BYTES = 16 << 20
CODE_KEYS = ("auto_map",)
TOKEN_IDS = ("bos_token_id", "eos_token_id", "pad_token_id")


def copy_tokenizer(source: Path, target: Path, config: dict[str, Any]) -> None:
    """Write the tokenizer of `source` to `target`; `config` gives token ids if nothing else does."""
    _copy_vocabulary(source, target)
    settings = _optional(source / TOKENIZER_CONFIG)
    template = _template(source, settings)
    if settings:
        kept = {key: value for key, value in settings.items() if key not in (*CODE_KEYS, "chat_template")}
        write_object(target, TOKENIZER_CONFIG, kept)
    if special := _optional(source / SPECIAL_TOKENS):
        write_object(target, SPECIAL_TOKENS, special)
    write_template(target, template)
    generation = _optional(source / GENERATION) or {key: config[key] for key in TOKEN_IDS if key in config}
    if generation:
        write_object(target, GENERATION, generation)


def _copy_vocabulary(source: Path, target: Path) -> None:
    path = source / TOKENIZER
    if not path.exists():
        raise DecdecError(
            f"The model in {source} has no usable tokenizer",
            f"{TOKENIZER} is missing",
            "download it into the folder",
        )
    data = read_bounded(path, MAX_TOKENIZER_BYTES)
    if not isinstance(parse_object(path, data).get("model"), dict):
        raise damaged(path, "it holds no tokenizer model")
    write_file(target, TOKENIZER, data)


def _optional(path: Path) -> dict[str, Any]:
    return read_object(path, MAX_SETTINGS_BYTES) if path.exists() else {}


def _template(source: Path, settings: dict[str, Any]) -> str | None:
    """From chat_template.jinja, chat_template.json or tokenizer_config.json, in transformers' order."""
    if (path := source / TEMPLATE).exists():
        return read_bounded(path, MAX_TEMPLATE_BYTES).decode(errors="replace")
    held = _optional(source / "chat_template.json") or settings
    return _default_template(held.get("chat_template"))


def _default_template(value: Any) -> str | None:
    """A template, or the one called "default" in a list of named ones."""
    if isinstance(value, list):
        named = {item.get("name"): item.get("template") for item in value if isinstance(item, dict)}
        value = named.get("default")
    return value if isinstance(value, str) else None
