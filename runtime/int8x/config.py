"""The `quantization_config` of an INT8-X model: composed by the writer, checked before anything is read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from kernels.int8x import BLOCK, Granularity
from runtime.checkpoint.files import shown
from runtime.errors import DecdecError
from runtime.int8x.choice import CodecChoice
from runtime.int8x.entries import Entry

QUANT_METHOD = "int8x"
FORMAT_VERSION = 2


def compose(
    granularity: Granularity, choice: CodecChoice, source: str, entries: Mapping[str, Entry]
) -> dict[str, Any]:
    """The dictionary that goes into `config.json` under `quantization_config`."""
    return {
        "quant_method": QUANT_METHOD,
        "format_version": FORMAT_VERSION,
        "block": BLOCK,
        "granularity": granularity,
        **choice.describe(),
        "source": source,
        "tensors": {name: msgspec.to_builtins(entry) for name, entry in entries.items()},
    }


def parse(config: Mapping[str, Any], folder: Path) -> dict[str, Entry]:
    """Entries by tensor name, from the content of `config.json`; DecdecError on anything not understood."""
    quantization = config.get("quantization_config")
    if not isinstance(quantization, dict) or quantization.get("quant_method") != QUANT_METHOD:
        raise DecdecError(
            f"{folder} is not an INT8-X model", "its config.json does not say quant_method int8x"
        )
    _check_version(quantization, folder)
    tensors = quantization.get("tensors")
    if not isinstance(tensors, dict) or not tensors:
        raise DecdecError(f"{folder} cannot be read", "its quantization_config lists no tensors")
    return {name: parse_entry(name, content) for name, content in tensors.items()}


def parse_entry(name: str, content: Any) -> Entry:
    """One tensor's entry; DecdecError with the tensor's name."""
    try:
        return msgspec.convert(content, Entry)
    except msgspec.ValidationError as error:
        raise tensor_error(
            name, f"its entry in quantization_config is wrong ({shown(str(error))})"
        ) from error


def tensor_error(name: str, why: str, fix: str = "make the model again from its source") -> DecdecError:
    """The sentence for a tensor that cannot be used."""
    return DecdecError(f"Tensor {shown(name)} was refused", why, fix)


def _check_version(quantization: Mapping[str, Any], folder: Path) -> None:
    version = quantization.get("format_version")
    if version != FORMAT_VERSION or isinstance(version, bool):
        raise DecdecError(
            f"{folder} cannot be read",
            f"its INT8-X format version is {version!r}, this program knows {FORMAT_VERSION}",
            "update decdec-chat, or make the model again from its source",
        )
    if quantization.get("block") != BLOCK:
        raise DecdecError(
            f"{folder} cannot be read", f"blocks of {quantization.get('block')!r} are not known"
        )
