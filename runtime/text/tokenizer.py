"""A model's `tokenizer.json`, driven by the `tokenizers` library alone: transformers costs seconds to import.

A *control token* steers the model (`<|im_end|>`, `<think>`); typed by a person it must be plain text. They
are the tokens marked special, and added tokens that the chat template writes or that are spelled `<|…|>`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from runtime.errors import DecdecError
from runtime.text import files
from runtime.text.backend import Backend
from runtime.text.template import template_source
from runtime.text.tokenizer_limits import check_added, check_normaliser

_PIPED = re.compile(r"<\|[^<>\s]{1,64}\|>")
# Reasoning is shown to the user (collapsed), so its tags stay visible even where a model calls them special.
VISIBLE = frozenset({"<think>", "</think>"})


class Tokenizer:
    """Text to token ids and back to bytes."""

    def __init__(self, path: Path, template: str = "") -> None:
        """Load `tokenizer.json`. `template`: the chat template's text, which names control tokens.

        Raises DecdecError when the file is missing, damaged or of an unknown kind.
        """
        document = _decode(path)
        added = _added(document, path)
        _check(document, added, template, path)
        named = {entry["content"] for entry in added if _is_control(entry, template)}
        self._backend = _build(document, added, named, path)
        special = {entry["content"] for entry in added if entry.get("special")}
        self.hidden = frozenset(self._ids(special - VISIBLE).values())
        self.control: dict[str, int] = self._ids(named)
        steps = _decoder_steps(document, path)
        self.decoder_kinds = frozenset(str(step.get("type")) for step in steps)
        self.strips_first_space = any(map(_strips, steps))

    @classmethod
    def from_folder(cls, folder: Path) -> Tokenizer:
        """The tokenizer of the model in `folder`."""
        return cls(folder / "tokenizer.json", template_source(folder) or "")

    def _ids(self, tokens: Iterable[str]) -> dict[str, int]:
        """The library's own ids of added tokens: it does not always follow those of the file."""
        found = ((token, self._backend.id_of(token)) for token in sorted(tokens))
        return {token: token_id for token, token_id in found if token_id is not None}

    @property
    def vocab_size(self) -> int:
        """Ids are below this number."""
        return self._backend.vocab_size

    @property
    def longest_token(self) -> int:
        """Characters of the longest token."""
        return self._backend.longest_token

    def id_of(self, token: str) -> int | None:
        """A token's id by its exact name, None when there is none."""
        return self._backend.id_of(token)

    def token_of(self, token_id: int) -> str | None:
        """A token's name, None for an id the tokenizer does not know (padding rows of an embedding)."""
        return self._backend.token_of(token_id)

    @cached_property
    def first_ids(self) -> tuple[int, ...]:
        """What the tokenizer puts before every text by itself (usually one BOS id, or nothing)."""
        return tuple(self._backend.first_ids()[:1])

    @cached_property
    def control_pattern(self) -> re.Pattern[str]:
        """Matches any control token, longest first."""
        longest_first = sorted(self.control, key=len, reverse=True)
        return re.compile("|".join(map(re.escape, longest_first)) or "(?!)")

    def encode(self, text: str) -> list[int]:
        """Ids of template text: control tokens are recognised, nothing is added."""
        return self._backend.encode(text)

    def encode_plain(self, text: str) -> list[int]:
        """Ids of a person's text: no control token can come out of it."""
        return self._backend.encode(text, plain=True)

    def encode_inner(self, texts: Sequence[str], *, plain: bool) -> list[list[int]]:
        """Ids of pieces that follow other text: without the space that may go before a first word."""
        guard = self._backend.encode("\n", plain=plain)
        guarded = self._backend.encode_all([f"\n{text}" for text in texts], plain=plain)
        return [
            ids[len(guard) :] if ids[: len(guard)] == guard else self._backend.encode(text, plain=plain)
            for text, ids in zip(texts, guarded, strict=True)
        ]


def _decode(path: Path) -> dict[str, msgspec.Raw]:
    """Top level only: the vocabulary stays raw, which makes this ten times cheaper than a full parse."""
    try:
        return msgspec.json.decode(files.read_bytes(path), type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, RecursionError) as error:
        raise _damaged(path, error) from error


def _added(document: dict[str, msgspec.Raw], path: Path) -> list[dict[str, Any]]:
    try:
        entries = msgspec.json.decode(document.get("added_tokens", b"[]"), type=list[dict[str, Any]])
    except (msgspec.DecodeError, RecursionError) as error:
        raise _damaged(path, error) from error
    for entry in entries:
        if not isinstance(entry.get("content"), str) or not isinstance(entry.get("id"), int):
            raise _damaged(path, ValueError("an added token has no content or id"))
    return entries


def _is_control(entry: dict[str, Any], template: str) -> bool:
    content = entry["content"]
    written = content in template or _PIPED.fullmatch(content)
    return bool(entry.get("special") or (len(content.strip()) > 2 and written))


def _check(document: dict[str, msgspec.Raw], added: list[dict[str, Any]], template: str, path: Path) -> None:
    try:
        check_added(added, template)
        check_normaliser(msgspec.json.decode(document.get("normalizer", b"null")))
    except (ValueError, RecursionError) as error:
        raise _damaged(path, error) from error


def _build(
    document: dict[str, msgspec.Raw], added: list[dict[str, Any]], control: Collection[str], path: Path
) -> Backend:
    """The library's object, every control token flagged special so that one switch turns all into text."""
    entries = [{**entry, "special": entry["content"] in control} for entry in added]
    changed = {**document, "added_tokens": entries, "truncation": None, "padding": None}
    return Backend(msgspec.json.encode(changed).decode("utf-8"), path)


def _decoder_steps(document: dict[str, msgspec.Raw], path: Path) -> list[dict[str, Any]]:
    try:
        decoder = msgspec.json.decode(document.get("decoder", b"null"))
    except (msgspec.DecodeError, RecursionError) as error:
        raise _damaged(path, error) from error
    steps = decoder.get("decoders", [decoder]) if isinstance(decoder, dict) else []
    if not isinstance(steps, list) or not steps or not all(isinstance(step, dict) for step in steps):
        raise DecdecError(f"{path} is not supported", "it does not say how tokens become text")
    return steps


def _strips(step: dict[str, Any]) -> bool:
    metaspace = step.get("type") == "Metaspace" and step.get("prepend_scheme", "always") != "never"
    return metaspace or (step.get("type") == "Strip" and bool(step.get("start")))


def _damaged(path: Path, error: Exception) -> DecdecError:
    return DecdecError(f"{path} is damaged", str(error)[:200], "prepare the model again")
