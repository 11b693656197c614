"""The output layer on a GPU: INT8-X planes of its stored rows, or of the same rows in fewer, wider steps."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from kernels.gpu.planes import DevicePlanes
from kernels.int8x.quantise import QMAX
from runtime.engine.gpu.footprint import LinearForm
from runtime.engine.gpu.packing import planes_on

# 8 is what is stored. Fewer are for where memory is short: SmolLM2 with 7 bits is KL 0.005 from its source
# (0.1 % of perplexity), with 6 bits 0.018 (2.5 %), with 5 bits 0.065 (8 %), which is no longer offered.
HEAD_BITS = (8, 7, 6)
STORED_BITS = 8
# What the container pays for bytes that hardly repeat is not paid for fewer bits.
_BYTE_COST = 0.1
_WEIGHTS_AT_ONCE = 1 << 24


def head_level(bits: int) -> int:
    """The largest code of so many bits. ValueError for bits that no head has."""
    if bits not in HEAD_BITS:
        raise ValueError(f"a head has {', '.join(map(str, HEAD_BITS))} bits, not {bits}")
    return int(2 ** (bits - 1)) - 1


def head_form(stored: LinearForm, bits: int) -> LinearForm:
    """How a stored head will be coded with `bits`: steps twice as wide take one bit a weight less."""
    if bits == STORED_BITS:
        return stored
    saved = math.log2(QMAX / head_level(bits)) + _BYTE_COST
    return LinearForm("planes", max(stored.bits - saved, 1.0), stored.columns)


def head_weights(q: Tensor, scale: Tensor, bits: int, packing: float) -> DevicePlanes:
    """The head where `scale` is, packed with a price of time; `bits` 8 is lossless."""
    if bits != STORED_BITS:
        q, scale = coarser(q, scale, bits)
    return planes_on(q, scale, packing, scale.device)


def coarser(q: Tensor, scale: Tensor, bits: int) -> tuple[Tensor, Tensor]:
    """int8 codes [rows, columns] and float32 scales [rows], rounded to steps of fewer bits."""
    level = head_level(bits)
    rows = max(1, _WEIGHTS_AT_ONCE // q.shape[1])
    parts = [(part.float() * (level / QMAX)).round_().to(torch.int8) for part in q.split(rows)]
    return torch.cat(parts), scale * (QMAX / level)
