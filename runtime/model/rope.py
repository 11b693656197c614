"""Rotary position embedding: inverse frequencies of every variant in use, and cos/sin tables.

Variants: default, linear, llama3, longrope (Phi-3). Formulas as in `transformers.modeling_rope_utils`,
against which the tests compare.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch

from runtime.errors import DecdecError

MAX_DIM = 1 << 14
SUPPORTED = ("default", "linear", "llama3", "longrope")


@dataclass(frozen=True, slots=True)
class RopeSpec:
    """Frequencies of one kind of layer. `rotary_dim` <= head_dim (partial rotation of Phi-3 variants)."""

    rotary_dim: int
    inv_freq: tuple[float, ...]
    attention_factor: float = 1.0

    def __post_init__(self) -> None:
        if self.rotary_dim % 2 or len(self.inv_freq) != self.rotary_dim // 2:
            raise DecdecError("The rotary embedding is malformed", f"{self.rotary_dim} dimensions rotate")
        if not all(map(math.isfinite, (*self.inv_freq, self.attention_factor))):
            raise DecdecError("The rotary embedding is malformed", "a frequency or its factor is no number")

    def tables(self, length: int) -> tuple[torch.Tensor, torch.Tensor]:
        """cos and sin, float32 [length, rotary_dim / 2]."""
        angles = torch.outer(torch.arange(length, dtype=torch.float32), torch.tensor(self.inv_freq))
        return angles.cos() * self.attention_factor, angles.sin() * self.attention_factor


def rope_spec(parameters: dict[str, Any], head_dim: int, max_positions: int) -> RopeSpec:
    """Frequencies from a config's `rope_parameters`. `max_positions`: the config's context length."""
    kind = parameters.get("rope_type", "default")
    if kind not in SUPPORTED:
        raise DecdecError(
            f"Rotary embedding of type {kind!r} is not supported", f"known are {', '.join(SUPPORTED)}"
        )
    dim = int(head_dim * float(parameters.get("partial_rotary_factor", 1.0)))
    base = float(parameters.get("rope_theta", 10000.0))
    if not (0 < dim <= min(head_dim, MAX_DIM) and 0 < base < math.inf):
        raise DecdecError(
            "The rotary embedding is malformed", f"{dim} dimensions rotate, rope_theta is {base}"
        )
    inv_freq = base ** -(torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    factor = 1.0
    if kind == "linear":
        inv_freq = inv_freq / float(parameters["factor"])
    elif kind == "llama3":
        inv_freq = _llama3(inv_freq, parameters)
    elif kind == "longrope":
        inv_freq, factor = _longrope(inv_freq, parameters, max_positions)
    return RopeSpec(dim, tuple(inv_freq.float().tolist()), factor)


def _llama3(inv_freq: torch.Tensor, parameters: dict[str, Any]) -> torch.Tensor:
    """Long wavelengths are divided by `factor`, short ones kept, a ramp between (Llama 3.1)."""
    factor, low, high = (float(parameters[k]) for k in ("factor", "low_freq_factor", "high_freq_factor"))
    original = float(parameters["original_max_position_embeddings"])
    wavelength = 2 * math.pi / inv_freq
    ramp = ((original / wavelength - low) / (high - low)).clamp(0, 1)
    return (1 - ramp) * inv_freq / factor + ramp * inv_freq


def _longrope(
    inv_freq: torch.Tensor, parameters: dict[str, Any], max_positions: int
) -> tuple[torch.Tensor, float]:
    """Phi-3's per-dimension factors: the short set, valid up to the original context."""
    original = int(parameters["original_max_position_embeddings"])
    scale = max_positions / original
    factor = parameters.get("attention_factor")
    if factor is None:
        factor = math.sqrt(1 + math.log(scale) / math.log(original)) if scale > 1 else 1.0
    short = [float(each) for each in parameters["short_factor"]]
    if len(short) != len(inv_freq):
        why = f"short_factor has {len(short)} numbers for {len(inv_freq)} frequencies"
        raise DecdecError("The rotary embedding is malformed", why)
    return inv_freq / torch.tensor(short, dtype=torch.float64), float(factor)
