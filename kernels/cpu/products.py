"""Torch's own low-bit products for the CPU, bfloat16 in and out, and their plain twins for many tokens."""

from __future__ import annotations

import torch

# Above this many tokens a dequantised panel and a dense product are faster than the weight-only op.
PANEL_TOKENS = 24
# What torch's ops take at once. Its int8 product does not check it: it reads past the ends of other rows, and
# gives anything or crashes.
INT8_COLUMNS = 16
INT4_ROWS = 16


def int8_product(x: torch.Tensor, q: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """x [tokens, n_in] times (q * scale)^T ; q int8 [n_out, n_in], scale [n_out]; all bf16."""
    if x.shape[0] <= PANEL_TOKENS and q.shape[1] % INT8_COLUMNS == 0:
        return torch._weight_int8pack_mm(x, q, scale)
    return torch.nn.functional.linear(x, q.to(x.dtype)) * scale


def int4_product(x: torch.Tensor, packed: torch.Tensor, group: int, tables: torch.Tensor) -> torch.Tensor:
    """x [tokens, n_in] times a packed 4-bit matrix; tables bf16 [n_in / group, n_out, 2] (scale, zero)."""
    return torch.ops.aten._weight_int4pack_mm_for_cpu(x, packed, group, tables)


def pack_int4(codes: torch.Tensor) -> torch.Tensor:
    """Codes int32 [n_out, n_in] in 0..15 to the op's packed form."""
    return torch.ops.aten._convert_weight_to_int4pack_for_cpu(codes, 1)


def residual_product(x: torch.Tensor, codes: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """x bf16 [tokens, n_in] times every residual row -> float32 [tokens, n_out]; codes int8 [n_in, n_out]."""
    return (x @ codes.to(x.dtype)).float() * scale
