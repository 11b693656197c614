"""The tokenizer inside a GGUF, converted by transformers and written in Hugging Face form."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from runtime.checkpoint.files import damaged, shown
from runtime.checkpoint.gguf_fields import GgufFields
from runtime.checkpoint.tokenizer_files import GENERATION, write_object, write_template
from runtime.panics import is_failure
from runtime.store.oserrors import explain, translated

_PREFIX = "tokenizer.ggml."
_SPECIAL = {
    "bos_token": "bos_token_id",
    "eos_token": "eos_token_id",
    "unk_token": "unknown_token_id",
    "pad_token": "padding_token_id",
}
_STOP_KEYS = ("eos_token_id", "eot_token_id", "eom_token_id")
# Ends of a turn that older files do not list under eot_token_id.
_TURN_ENDS = ("<|im_end|>", "<|eot_id|>", "<|end|>", "<end_of_turn>")
_SAMPLING = {
    "temperature": "temp",
    "top_p": "top_p",
    "min_p": "min_p",
    "repetition_penalty": "penalty_repeat",
}
_CONTROL_TOKEN = 3


def write_gguf_tokenizer(fields: GgufFields, folder: Path) -> None:
    """Write tokenizer, generation settings and chat template into `folder`."""
    vocabulary = _vocabulary(fields)
    special = {name: _token(fields, vocabulary["tokens"], key) for name, key in _SPECIAL.items()}
    template = fields.text("tokenizer.chat_template")
    with translated(folder, "Writing the tokenizer"):
        folder.mkdir(parents=True, exist_ok=True)
    _convert(fields, vocabulary, special, folder)
    write_template(folder, template)
    write_object(folder, GENERATION, generation_settings(fields, vocabulary))


def generation_settings(fields: GgufFields, vocabulary: dict[str, Any]) -> dict[str, Any]:
    """The content of generation_config.json: token ids, every end of a turn, and sampling where stated."""
    settings: dict[str, Any] = {}
    for name, key in (("bos_token_id", "bos_token_id"), ("pad_token_id", "padding_token_id")):
        if (value := fields.integer(_PREFIX + key)) is not None:
            settings[name] = value
    if stops := _stop_ids(fields, vocabulary):
        settings["eos_token_id"] = stops[0] if len(stops) == 1 else stops
    return settings | _sampling(fields)


def _vocabulary(fields: GgufFields) -> dict[str, Any]:
    """The lists of the tokenizer under transformers' names, checked to belong together."""
    vocabulary: dict[str, Any] = {
        "tokenizer_type": fields.text(_PREFIX + "model"),
        "pre_tokenizer_type": fields.text(_PREFIX + "pre"),
        "tokens": fields.texts(_PREFIX + "tokens"),
        "token_type": fields.integers(_PREFIX + "token_type"),
        "scores": fields.reals(_PREFIX + "scores"),
        "merges": fields.texts(_PREFIX + "merges"),
    }
    if not vocabulary["tokens"]:
        raise damaged(fields.path, "it holds no tokenizer", "use a whole GGUF of a text model")
    for name in ("token_type", "scores"):
        if vocabulary[name] is not None and len(vocabulary[name]) != len(vocabulary["tokens"]):
            raise damaged(fields.path, f"its tokenizer has {name} of another length than its tokens")
    return {name: value for name, value in vocabulary.items() if value is not None}


def _token(fields: GgufFields, tokens: list[str], key: str) -> str | None:
    index = fields.integer(_PREFIX + key)
    if index is None:
        return None
    if index >= len(tokens):
        raise damaged(fields.path, f"its metadata {_PREFIX}{key} is {index}, there are {len(tokens)} tokens")
    return tokens[index]


def _convert(
    fields: GgufFields, vocabulary: dict[str, Any], special: dict[str, str | None], folder: Path
) -> None:
    from transformers import PreTrainedTokenizerFast

    convert_gguf_tokenizer = _converter()
    adds_bos = fields.flag(_PREFIX + "add_bos_token", vocabulary.get("tokenizer_type") == "llama")
    adds_eos = fields.flag(_PREFIX + "add_eos_token", False)
    try:
        backend, extra = convert_gguf_tokenizer(fields.architecture, vocabulary)
        named = {**extra, **special, "add_bos_token": adds_bos, "add_eos_token": adds_eos}
        PreTrainedTokenizerFast(tokenizer_object=backend, **named).save_pretrained(folder)
    except OSError as error:
        raise explain(error, folder, "Writing the tokenizer") from error
    # The conversion runs on unchecked lists and raises whatever the first wrong item leads to.
    except BaseException as error:
        if not is_failure(error):
            raise
        raise damaged(
            fields.path,
            f"its tokenizer cannot be converted ({shown(str(error))})",
            "use another GGUF of the model",
        ) from error


def _converter() -> Callable[[str, dict[str, Any]], tuple[Any, dict[str, Any]]]:
    """transformers' own conversion; between 5.17 and 5.24 it moved, and Gemma 3 was renamed there."""
    homes = ("transformers.integrations.gguf", "transformers.integrations.ggml")
    found = (getattr(importlib.import_module(home), "convert_gguf_tokenizer", None) for home in homes)
    convert = cast(Any, next(function for function in found if function is not None))

    def by_either_name(architecture: str, vocabulary: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        try:
            return cast(tuple[Any, dict[str, Any]], convert(architecture, vocabulary))
        except KeyError:
            return cast(tuple[Any, dict[str, Any]], convert(f"{architecture}_text", vocabulary))

    return by_either_name


def _stop_ids(fields: GgufFields, vocabulary: dict[str, Any]) -> list[int]:
    stated = [fields.integer(_PREFIX + key) for key in _STOP_KEYS]
    types = vocabulary.get("token_type") or [_CONTROL_TOKEN] * len(vocabulary["tokens"])
    known = [
        index
        for index, token in enumerate(vocabulary["tokens"])
        if token in _TURN_ENDS and types[index] == _CONTROL_TOKEN
    ]
    return list(dict.fromkeys(index for index in (*stated, *known) if index is not None))


def _sampling(fields: GgufFields) -> dict[str, Any]:
    settings: dict[str, Any] = {
        name: value
        for name, key in _SAMPLING.items()
        if (value := fields.real(f"general.sampling.{key}")) is not None
    }
    if (top_k := fields.integer("general.sampling.top_k")) is not None:
        settings["top_k"] = top_k
    return settings | ({"do_sample": True} if settings else {})
