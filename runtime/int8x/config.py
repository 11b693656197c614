"""The `quantization_config` of an INT8-X model: composed by the writer, checked before anything is read."""

from __future__ import annotations

import json
import zlib
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
AGAIN = "make the model again from its source (decdec-chat pull, or int8x encode)"


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


def seal(quantization: Mapping[str, Any]) -> dict[str, Any]:
    """The dictionary with a checksum over all of it, the last thing that is done to it."""
    return {**quantization, "checksum": _checksum(quantization)}


def parse(config: Mapping[str, Any], folder: Path) -> dict[str, Entry]:
    """Entries by tensor name, from the content of `config.json`; DecdecError on anything not understood."""
    quantization = config.get("quantization_config")
    if not isinstance(quantization, dict) or quantization.get("quant_method") != QUANT_METHOD:
        raise DecdecError(
            f"{folder} is not an INT8-X model", "its config.json does not say quant_method int8x"
        )
    _check_version(quantization, folder)
    if quantization.get("checksum") != _checksum(quantization):
        raise DecdecError(
            f"{folder} cannot be read",
            "the checksum of its quantization_config does not match, the file is damaged",
            AGAIN,
        )
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


def tensor_error(name: str, why: str, fix: str = AGAIN) -> DecdecError:
    """The sentence for a tensor that cannot be used."""
    return DecdecError(f"Tensor {shown(name)} was refused", why, fix)


def file_sums(config: Mapping[str, Any], folder: Path) -> dict[str, int]:
    """CRC-32 of the index and of every shard's header by file name, from a config that `parse` accepted."""
    sums = config["quantization_config"].get("files")
    if not isinstance(sums, dict) or not all(type(value) is int for value in sums.values()):
        raise DecdecError(f"{folder} cannot be read", "its quantization_config lists no files")
    return sums


def _checksum(quantization: Mapping[str, Any]) -> int:
    content = {key: value for key, value in quantization.items() if key != "checksum"}
    return zlib.crc32(json.dumps(content, sort_keys=True).encode())


def _check_version(quantization: Mapping[str, Any], folder: Path) -> None:
    version = quantization.get("format_version")
    if version != FORMAT_VERSION or isinstance(version, bool):
        older = isinstance(version, int) and version < FORMAT_VERSION
        raise DecdecError(
            f"{folder} cannot be read",
            f"its INT8-X format version is {version!r}, this program knows {FORMAT_VERSION}",
            AGAIN if older else f"update decdec-chat, or {AGAIN}",
        )
    if quantization.get("block") != BLOCK:
        raise DecdecError(
            f"{folder} cannot be read", f"blocks of {quantization.get('block')!r} are not known"
        )
