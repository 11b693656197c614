"""Sensitivities on disk: one small file beside a model being prepared, so that a resumed run has them."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import load_file, save

from runtime.layers.base import LINEAR_KINDS
from runtime.sensitivity.fisher import BlockSensitivity
from runtime.sensitivity.linear import Sensitivity
from runtime.store import atomic

FILE = Path("calibration") / "sensitivity.safetensors"


def has_sensitivities(folder: Path) -> bool:
    """Whether a finished file is there."""
    return (folder / FILE).is_file()


def write_sensitivities(folder: Path, blocks: list[BlockSensitivity]) -> None:
    """Write all blocks' sensitivities, whole or not at all."""
    tensors: dict[str, torch.Tensor] = {}
    for index, block in enumerate(blocks):
        for kind, sensitivity in block.items():
            tensors[f"{index}.{kind}.outputs"] = sensitivity.outputs
            tensors[f"{index}.{kind}.inputs"] = sensitivity.inputs
    (folder / FILE).parent.mkdir(parents=True, exist_ok=True)
    atomic.write_bytes(folder / FILE, save(tensors))


def read_sensitivities(folder: Path, blocks: int) -> list[BlockSensitivity]:
    """What `write_sensitivities` wrote for a model of that many blocks."""
    tensors = load_file(folder / FILE)
    return [
        {
            kind: Sensitivity(tensors[f"{index}.{kind}.outputs"], tensors[f"{index}.{kind}.inputs"])
            for kind in LINEAR_KINDS
        }
        for index in range(blocks)
    ]
