"""Which token ids end an answer: every source is asked, because each of them is wrong for some model."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from runtime.text import files
from runtime.text.special import special_tokens
from runtime.text.tokenizer import Tokenizer

# Ends of turn that chat templates write while configurations name another token (or a base model's).
END_OF_TURN = (
    "<|im_end|>",
    "<|eot_id|>",
    "<end_of_turn>",
    "<|end|>",
    "<|end_of_turn|>",
    "<|endoftext|>",
    "<|end_of_text|>",
)


def end_ids(folder: Path, tokenizer: Tokenizer) -> frozenset[int]:
    """Ids of every token that ends an answer of the model in `folder`."""
    config = files.read_object(folder / "config.json")
    text_config = config.get("text_config")
    sources: list[Any] = [
        files.read_object(folder / "generation_config.json").get("eos_token_id"),
        config.get("eos_token_id"),
        text_config.get("eos_token_id") if isinstance(text_config, dict) else None,
        tokenizer.id_of(special_tokens(folder).get("eos_token", "")),
        [tokenizer.control[name] for name in END_OF_TURN if name in tokenizer.control],
    ]
    return frozenset(token_id for source in sources for token_id in _ids(source))


def _ids(source: Any) -> Iterable[int]:
    candidates = source if isinstance(source, list) else [source]
    return (each for each in candidates if isinstance(each, int) and not isinstance(each, bool) and each >= 0)
