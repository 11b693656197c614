"""AWQ and GPTQ checkpoints written nibble by nibble from the layouts' definitions."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file

AWQ_SETTINGS = {"quant_method": "awq", "bits": 4, "group_size": 32, "version": "gemm", "zero_point": True}
GPTQ_SETTINGS = {"quant_method": "gptq", "bits": 4, "group_size": 32, "desc_act": False, "sym": False}
AWQ_NIBBLES = [0, 2, 4, 6, 1, 3, 5, 7]


@dataclass
class Quantised:
    """codes int [n_out, n_in], zeros int [n_out, groups], scales float [n_out, groups]."""

    codes: np.ndarray
    zeros: np.ndarray
    scales: np.ndarray
    group: int

    def values(self) -> torch.Tensor:
        """What the layouts define the weight to be, float32 [n_out, n_in]."""
        index = np.arange(self.codes.shape[1]) // self.group
        values = (self.codes - self.zeros[:, index]) * self.scales[:, index].astype(np.float64)
        return torch.from_numpy(values).float()


def round_to_groups(weight: torch.Tensor, group: int) -> Quantised:
    """Asymmetric min/max groups with float16 scales."""
    w = weight.double().numpy()
    parts = [w[:, i : i + group] for i in range(0, w.shape[1], group)]
    low = np.stack([np.minimum(p.min(1), 0) for p in parts], 1)
    high = np.stack([np.maximum(p.max(1), 0) for p in parts], 1)
    scales = ((high - low) / 15).astype(np.float16)
    zeros = np.round(-low / scales).astype(int).clip(0, 15)
    index = np.arange(w.shape[1]) // group
    codes = (np.round(w / scales[:, index]) + zeros[:, index]).astype(int).clip(0, 15)
    return Quantised(codes, zeros, scales, group)


def awq_tensors(q: Quantised) -> dict[str, torch.Tensor]:
    def pack(matrix: np.ndarray) -> torch.Tensor:
        words = np.zeros((matrix.shape[0], matrix.shape[1] // 8), np.uint32)
        for word in range(words.shape[1]):
            for nibble, output in enumerate(AWQ_NIBBLES):
                words[:, word] |= matrix[:, 8 * word + output].astype(np.uint32) << np.uint32(4 * nibble)
        return torch.from_numpy(words.view(np.int32))

    return {"qweight": pack(q.codes.T), "qzeros": pack(q.zeros.T), "scales": _half(q.scales.T)}


def gptq_tensors(q: Quantised, offset: int = 1, index: bool = True) -> dict[str, torch.Tensor]:
    """offset: 1 as the first format takes off whole words of zero points, 0 as the second does not."""
    n_out, n_in = q.codes.shape
    words = np.zeros((n_in // 8, n_out), np.uint32)
    for i in range(n_in):
        words[i // 8] |= q.codes[:, i].astype(np.uint32) << np.uint32(4 * (i % 8))
    zeros = np.zeros((q.zeros.shape[1], n_out // 8), np.uint64)
    for o in range(n_out):
        zeros[:, o // 8] += q.zeros[o].astype(np.uint64) << np.uint64(4 * (o % 8))
    stored = ((zeros + (2**32 - 0x11111111) * offset) % 2**32).astype(np.uint32)
    tensors = {
        "qweight": torch.from_numpy(words.view(np.int32)),
        "qzeros": torch.from_numpy(stored.view(np.int32)),
        "scales": _half(q.scales.T),
    }
    places = {"g_idx": torch.arange(n_in, dtype=torch.int32) // q.group}
    return tensors | (places if index else {})


def write_packed(
    folder: Path,
    linears: dict[str, dict[str, torch.Tensor]],
    settings: dict[str, Any],
    plain: dict[str, torch.Tensor] | None = None,
    config: dict[str, Any] | None = None,
    file: str = "model.safetensors",
) -> Path:
    """A folder with config.json and one file; `linears` by module name."""
    folder.mkdir(exist_ok=True)
    whole = {"model_type": "llama", **(config or {}), "quantization_config": settings}
    (folder / "config.json").write_text(json.dumps(whole))
    tensors = {f"{name}.{part}": t for name, parts in linears.items() for part, t in parts.items()}
    save_file({n: t.contiguous() for n, t in (tensors | (plain or {})).items()}, folder / file)
    return folder


def _half(values: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(values)).half()
