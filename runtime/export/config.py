"""`config.json` of an exported folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

QUANT_METHOD = "compressed-tensors"
FORMAT = "pack-quantized"
DTYPE = "bfloat16"
# What describes the container, or names code that is not part of the folder.
_DROPPED = ("quantization_config", "auto_map")


def exported_config(config: Mapping[str, Any], ignore: list[str]) -> dict[str, Any]:
    """The model's own configuration with weight-only INT8 in place of INT8-X.

    `ignore`: modules that are linear and not quantised. The type is said under its old and its new key.
    """
    kept = {key: value for key, value in config.items() if key not in _DROPPED}
    return {**kept, "dtype": DTYPE, "torch_dtype": DTYPE, "quantization_config": _quantization(ignore)}


def _quantization(ignore: list[str]) -> dict[str, Any]:
    weights = {
        "num_bits": 8,
        "type": "int",
        "symmetric": True,
        "strategy": "channel",
        "group_size": None,
        "dynamic": False,
    }
    group = {"targets": ["Linear"], "weights": weights, "input_activations": None, "output_activations": None}
    return {
        "quant_method": QUANT_METHOD,
        "format": FORMAT,
        "quantization_status": "compressed",
        "config_groups": {"group_0": group},
        "ignore": ignore,
        "kv_cache_scheme": None,
    }
