"""Safetensors files: the header's text, its numbers, and tensors read through it."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import torch
from safetensors.torch import save

from runtime.checkpoint.safetensors_header import read_header
from runtime.checkpoint.shards import Located
from runtime.checkpoint.tensor_files import TensorFiles
from runtime.errors import DecdecError
from tests.fuzz.mutations import dumped, mutate_bytes, mutate_json

NAME = "safetensors"


def seeds(folder: Path) -> list[bytes]:
    """Files of a few tensors of every type, and none."""
    floats = {
        "model.a": torch.ones(3, 4, dtype=torch.bfloat16),
        "b": torch.ones(2, dtype=torch.float16),
        "c": torch.ones(1),
    }
    return [
        save(floats),
        save({"w": torch.ones(4, 2, dtype=torch.int32)}, {"format": "pt"}),
        save({"e": torch.ones(0, 5)}),
        save({}),
        _file({"x": {"dtype": "F32", "shape": [2**40, 0], "data_offsets": [0, 0]}}, b""),
        _file({"x": {"dtype": "F32", "shape": [2**62, 4], "data_offsets": [0, 0]}}, b""),
        b'{"a"' + b"[" * 3000,
    ]


def check(data: bytes, folder: Path) -> None:
    """Read every tensor of the file."""
    path = folder / "model.safetensors"
    path.write_bytes(data)
    try:
        header = read_header(path)
        tensors = TensorFiles(folder, {name: Located(path, entry) for name, entry in header.items()})
        for name in tensors.names():
            _read(tensors, name)
    except DecdecError:
        return


def _read(tensors: TensorFiles, name: str) -> None:
    for read in (tensors.load, lambda given: tensors.load_words(given, tensors.shape(given))):
        try:
            read(name)
        except DecdecError:
            continue


def mutate(data: bytes, random: Random) -> bytes:
    """Change the header as JSON, keep its length right most times, or change the data."""
    length = int.from_bytes(data[:8], "little")
    try:
        header = json.loads(data[8 : 8 + length])
    except (ValueError, RecursionError, OverflowError):
        return mutate_bytes(data, random)
    return _file(mutate_json(header, random), data[8 + length :], random.choice((0, 0, 0, 0, -1, 1, 2**62)))


def _file(header: object, data: bytes, off: int = 0) -> bytes:
    text = dumped(header)
    return (len(text) + off).to_bytes(8, "little") + text + data
