"""Bytes of one GGUF tensor to floating-point values, by the `gguf` package's vectorised dequantisers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from gguf.constants import GGMLQuantizationType as Kind
from gguf.quants import dequantize

from runtime.checkpoint.files import damaged, require_finite, shown, unreadable
from runtime.checkpoint.gguf_header import GgufTensor

PLAIN = {Kind.F32: torch.float32, Kind.F16: torch.float16, Kind.BF16: torch.bfloat16}
BLOCKS = frozenset(
    {Kind.Q4_0, Kind.Q4_1, Kind.Q5_0, Kind.Q5_1, Kind.Q8_0}
    | {Kind.Q2_K, Kind.Q3_K, Kind.Q4_K, Kind.Q5_K, Kind.Q6_K, Kind.IQ4_NL, Kind.IQ4_XS}
)


def require_readable(path: Path, tensor: GgufTensor) -> None:
    """Raise for storage types `load_tensor` cannot read."""
    if tensor.kind not in PLAIN and tensor.kind not in BLOCKS:
        raise damaged(
            path,
            f"tensor {shown(tensor.name)} has the type {tensor.kind.name}, which is not supported",
            "use a Q4_K_M, Q5_K_M, Q6_K, Q8_0 or F16 file of the model",
        )


def load_tensor(path: Path, tensor: GgufTensor) -> torch.Tensor:
    """Values in torch's shape: the stored type for F32, F16 and BF16, float32 for blocks; all finite."""
    raw = _read(path, tensor)
    if tensor.kind in PLAIN:
        values = torch.from_numpy(raw).view(PLAIN[tensor.kind]).reshape(tensor.shape)
    else:
        with np.errstate(all="ignore"):
            rows = dequantize(raw.reshape(*tensor.shape[:-1], -1), tensor.kind)
        values = torch.from_numpy(rows).reshape(tensor.shape)
    return require_finite(path, tensor.name, values)


def _read(path: Path, tensor: GgufTensor) -> np.ndarray:
    raw = np.empty(tensor.n_bytes, np.uint8)
    try:
        with path.open("rb") as file:
            file.seek(tensor.start)
            n_read = file.readinto(raw.data)
    except OSError as error:
        raise unreadable(path, error) from error
    if n_read != tensor.n_bytes:
        raise damaged(path, f"tensor {shown(tensor.name)} is cut off")
    return raw
