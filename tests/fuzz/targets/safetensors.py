"""Safetensors files: the header's text, its numbers, and tensors read through it."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import save

from runtime.checkpoint.safetensors_header import read_header
from runtime.checkpoint.shards import Located
from runtime.checkpoint.tensor_files import TensorFiles
from tests.fuzz.refusal import refusals
from tests.fuzz.safetensors_files import as_file, mutate_safetensors

NAME = "safetensors"
mutate = mutate_safetensors


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
        as_file({"x": {"dtype": "F32", "shape": [2**40, 0], "data_offsets": [0, 0]}}, b""),
        as_file({"x": {"dtype": "F32", "shape": [0, 2**63], "data_offsets": [0, 0]}}, b""),
        as_file({"x": {"dtype": "F32", "shape": [2**62, 4, 0], "data_offsets": [0, 0]}}, b""),
        as_file({}, b"")[:8] + b'{"a":' + b"[" * 3000,
        as_file({"a": [[[1]]]}, b"", 2**62),
        b"\xff" * 8 + b"{}",
    ]


def check(data: bytes, folder: Path) -> None:
    """Read every tensor of the file."""
    path = folder / "model.safetensors"
    path.write_bytes(data)
    with refusals():
        header = read_header(path)
        tensors = TensorFiles(folder, {name: Located(path, entry) for name, entry in header.items()})
        for name in tensors.names():
            with refusals():
                tensors.load(name)
            with refusals():
                tensors.load_words(name, tensors.shape(name))
