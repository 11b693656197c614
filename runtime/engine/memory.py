"""What fits in host memory: refuse with numbers before anything is loaded, and choose the context."""

from __future__ import annotations

import psutil

from kernels.dec import GROUP
from runtime.errors import MachineLimit
from runtime.layers.base import LINEAR_KINDS
from runtime.layers.lowbit import has_int4_product
from runtime.model.spec import ModelSpec
from runtime.model.weights import linear_shape
from runtime.protocol.bases import BaseSpec, Method
from runtime.protocol.commands import LOSSLESS
from runtime.store import in_words

# What torch, the compiled kernels and one dequantised panel take beside the model.
OVERHEAD_BYTES = 256 << 20
KV_SHARE = 0.25
# Bytes a weight takes in the CPU's layers: 4 bits and their tables, looked-up values as bfloat16, or int8.
GROUP_BYTES, LOOK_UP_BYTES, INT8_BYTES = 0.6, 2.0, 1.0
RESIDUAL_BYTES = 0.55
SMALLEST_CONTEXT = 512


def linear_weights(spec: ModelSpec) -> int:
    """Weights in all decoder linears."""
    return len(spec.layers) * sum(n_out * n_in for n_out, n_in in _shapes(spec))


def table_weights(spec: ModelSpec) -> int:
    """Weights in embedding and head, a tied table counted once."""
    return spec.vocab_size * spec.hidden * (1 if spec.tied else 2)


def base_bytes(spec: ModelSpec, base: str) -> int:
    """Bytes of a base's layers and their residuals; groups without an int4 product are looked up."""
    method = BaseSpec.parse(base).method
    each = (
        n_out * n_in * (_layer_bytes(method, n_out, n_in) + RESIDUAL_BYTES) for n_out, n_in in _shapes(spec)
    )
    return int(len(spec.layers) * sum(each))


def needed_bytes(spec: ModelSpec, base: str, lossless: bool) -> int:
    """Bytes of the loaded model: tables and INT8 layers one byte a weight, and a base with its residual."""
    low_bit = 0 if base == LOSSLESS else base_bytes(spec, base)
    exact = linear_weights(spec) if lossless else 0
    return table_weights(spec) + low_bit + exact + OVERHEAD_BYTES


def require_memory(spec: ModelSpec, base: str) -> bool:
    """Raise DecdecError when the model cannot fit; tells whether the lossless layers fit beside it."""
    free = psutil.virtual_memory().available
    low_bit = base != LOSSLESS
    needed = needed_bytes(spec, base, not low_bit)
    if needed > free:
        raise MachineLimit(
            "The model does not fit in memory",
            f"it needs {in_words(needed)} and {in_words(free)} are free",
            "close other programs or choose a smaller model",
        )
    return not low_bit or needed_bytes(spec, base, True) < free * (1 - KV_SHARE)


def choose_context(spec: ModelSpec, asked: int | None) -> int:
    """Context length: what was asked for, else what the model allows within a quarter of the free memory.

    Raises DecdecError when more is asked for than the model or the memory allows.
    """
    per_token = 2 * len(spec.layers) * spec.kv_size * 4
    room = int(psutil.virtual_memory().available * KV_SHARE) // per_token
    limit = min(spec.context, max(room, SMALLEST_CONTEXT))
    if asked is None:
        return limit
    if not 1 < asked <= limit:
        raise MachineLimit(
            f"A context of {asked} tokens is not possible",
            f"the model allows {spec.context}, the free memory {max(room, SMALLEST_CONTEXT)}",
            f"ask for at most {limit}",
        )
    return asked


def _shapes(spec: ModelSpec) -> list[tuple[int, int]]:
    return [linear_shape(spec, kind) for kind in LINEAR_KINDS]


def _layer_bytes(method: Method, n_out: int, n_in: int) -> float:
    """Bytes a weight of the layer that `base_layer` chooses."""
    if method == "int8x":
        return INT8_BYTES
    grouped = method != "squeezellm" and has_int4_product(n_out, n_in, GROUP)
    return GROUP_BYTES if grouped else LOOK_UP_BYTES
