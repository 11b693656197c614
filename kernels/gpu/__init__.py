"""Triton kernels that compute with compressed weights on a GPU.

Importing this needs neither triton nor a GPU: what needs them is imported when it is first asked for. The
functions `prepare.prepare` and `product.product` share their modules' names and are imported from there.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "DevicePlanes": "planes",
    "Prepared": "prepare",
    "ProductConfig": "product",
    "decode_bf16": "decode",
    "decode_int8": "decode",
    "new_prepared": "prepare",
    "pack_planes": "packing",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
