"""INT8 weights as the words of the compressed-tensors layout `pack-quantized`, and values as bfloat16."""

from __future__ import annotations

import numpy as np
import torch

from kernels.int8x import Quantised

PER_WORD = 4
# Values made at a time: a large table is never there as float32.
TILE_VALUES = 1 << 22


def packed_shape(n_out: int, n_in: int) -> tuple[int, int]:
    """Shape of the words of a matrix; a row ends with a whole word."""
    return n_out, -(-n_in // PER_WORD)


def pack(q: torch.Tensor) -> torch.Tensor:
    """q int8 [n_out, n_in] as int32 [n_out, ceil(n_in / 4)].

    A word holds the bytes q + 128 of four neighbours, the first in its lowest bits; padding is zero bytes.
    """
    n_out, n_in = q.shape
    words = np.zeros((n_out, packed_shape(n_out, n_in)[1] * PER_WORD), np.uint8)
    np.bitwise_xor(q.numpy().view(np.uint8), 0x80, out=words[:, :n_in])
    return torch.from_numpy(words.view(np.int32))


def bfloat16_values(matrix: Quantised) -> torch.Tensor:
    """What a matrix decodes to, rounded to the nearest bfloat16 [n_out, n_in]."""
    n_out, n_in = matrix.q.shape
    rows, columns = matrix.row_scale()[:, None], matrix.scales.column_scale()
    values = torch.empty(n_out, n_in, dtype=torch.bfloat16)
    height = max(1, TILE_VALUES // n_in)
    for first in range(0, n_out, height):
        tile = matrix.q[first : first + height].float() * rows[first : first + height]
        values[first : first + height] = tile if columns is None else tile / columns
    return values
