"""Sensitivities on disk: one small file beside a model being prepared, so that a resumed run has them."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from runtime.layers.base import LINEAR_KINDS
from runtime.sensitivity.fisher import BlockSensitivity
from runtime.sensitivity.linear import Sensitivity
from runtime.store import atomic

FILE = Path("calibration") / "sensitivity.safetensors"


def write_sensitivities(folder: Path, blocks: list[BlockSensitivity], source: str) -> None:
    """Write all blocks' sensitivities, whole or not at all. `source`: fingerprint of the weights."""
    tensors: dict[str, torch.Tensor] = {}
    for index, block in enumerate(blocks):
        for kind, sensitivity in block.items():
            tensors[f"{index}.{kind}.outputs"] = sensitivity.outputs
            tensors[f"{index}.{kind}.inputs"] = sensitivity.inputs
    atomic.write_bytes(folder / FILE, save(tensors, {"source": source}))


def read_sensitivities(folder: Path, blocks: int, source: str) -> list[BlockSensitivity] | None:
    """What was written for these weights; None where nothing usable is, which means to measure again."""
    try:
        with safe_open(folder / FILE, "pt") as file:
            if (file.metadata() or {}).get("source") != source:
                return None
            return [
                {kind: Sensitivity(*_pair(file, f"{index}.{kind}")) for kind in LINEAR_KINDS}
                for index in range(blocks)
            ]
    except (OSError, SafetensorError, ValueError):
        return None


def _pair(file: safe_open, name: str) -> tuple[torch.Tensor, torch.Tensor]:
    return file.get_tensor(f"{name}.outputs"), file.get_tensor(f"{name}.inputs")
