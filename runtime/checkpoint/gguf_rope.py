"""Rotary scaling of a GGUF in the terms of a Hugging Face configuration.

A GGUF states linear and YaRN scaling by keys, Llama 3's and LongRoPE's as tables of factors per rotary pair.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from runtime.checkpoint.files import damaged, shown
from runtime.checkpoint.gguf_fields import GgufFields

# The only values any published Llama 3 uses; the table is recomputed from them and compared.
LLAMA3_LOW, LLAMA3_HIGH, LLAMA3_CONTEXT = 1.0, 4.0, 8192

ReadTable = Callable[[str], torch.Tensor | None]


def rope_scaling(
    fields: GgufFields, read_table: ReadTable, theta: float, n_rotary: int
) -> dict[str, Any] | None:
    """The configuration's rope_scaling, or None; `n_rotary` is the number of rotated dimensions of a head."""
    short, long = read_table("rope_factors_short.weight"), read_table("rope_factors_long.weight")
    if short is not None and long is not None:
        return _longrope(fields, short, long, n_rotary)
    table = read_table("rope_freqs.weight")
    if table is not None and bool((table != 1).any()):
        return _llama3(fields, table, theta, n_rotary)
    return _by_keys(fields)


def llama3_factors(factor: float, theta: float, n_rotary: int) -> torch.Tensor:
    """Divisors of the rotary frequencies [n_rotary / 2] under Llama 3 scaling by `factor` (float64)."""
    exponent = torch.arange(0, n_rotary, 2, dtype=torch.float64) / n_rotary
    turns = LLAMA3_CONTEXT / (2 * math.pi * theta**exponent)
    smooth = ((turns - LLAMA3_LOW) / (LLAMA3_HIGH - LLAMA3_LOW)).clamp(0, 1)
    return 1 / ((1 - smooth) / factor + smooth)


def _llama3(fields: GgufFields, table: torch.Tensor, theta: float, n_rotary: int) -> dict[str, Any]:
    factor = float(table.max())
    if table.shape != (n_rotary // 2,) or not torch.allclose(
        table.double(), llama3_factors(factor, theta, n_rotary), rtol=1e-3
    ):
        raise damaged(
            fields.path, "rope_freqs.weight holds an unknown rotary scaling", "use another GGUF of the model"
        )
    return {
        "rope_type": "llama3",
        "factor": factor,
        "low_freq_factor": LLAMA3_LOW,
        "high_freq_factor": LLAMA3_HIGH,
        "original_max_position_embeddings": LLAMA3_CONTEXT,
    }


def _longrope(fields: GgufFields, short: torch.Tensor, long: torch.Tensor, n_rotary: int) -> dict[str, Any]:
    if short.shape != (n_rotary // 2,) or long.shape != short.shape:
        raise damaged(fields.path, "its tables of rotary factors have the wrong length")
    return {"rope_type": "longrope", "short_factor": short.tolist(), "long_factor": long.tolist()}


def _by_keys(fields: GgufFields) -> dict[str, Any] | None:
    kind = fields.own_text("rope.scaling.type")
    if kind in (None, "none"):
        return None
    if kind not in ("linear", "yarn"):
        raise damaged(
            fields.path, f"its rotary scaling {shown(str(kind))} is unknown", "use another GGUF of the model"
        )
    scaling: dict[str, Any] = {"rope_type": kind, "factor": fields.own_real("rope.scaling.factor")}
    if kind == "yarn":
        scaling["original_max_position_embeddings"] = fields.own_integer(
            "rope.scaling.original_context_length"
        )
    return scaling
