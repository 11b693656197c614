"""Dense bit packing of base codes: eight codes of b bits in b bytes, the first code in the lowest bits."""

from __future__ import annotations

import torch

WORD_CODES = 8
WORD_BYTES = 4


def packed_width(n_in: int, bits: int) -> int:
    """Bytes that one row of n_in codes takes."""
    return -(-n_in // WORD_CODES) * bits


def pack_codes(codes: torch.Tensor, bits: int) -> torch.Tensor:
    """uint8 [n_out, n_in] below 2**bits (bits at most 4) -> uint8 [n_out, packed_width]."""
    if codes.numel() and codes.amax() >= 2**bits:
        raise ValueError(f"a code does not fit {bits} bits")
    n_out, n_in = codes.shape
    words = torch.zeros(n_out, -(-n_in // WORD_CODES), dtype=torch.int32)
    for place in range(min(WORD_CODES, n_in)):
        column = codes[:, place::WORD_CODES].int()
        words[:, : column.shape[1]] |= column << (bits * place)
    low = words.view(torch.uint8).view(n_out, -1, WORD_BYTES)[..., :bits]
    return low.reshape(n_out, packed_width(n_in, bits))


def unpack_codes(packed: torch.Tensor, n_in: int, bits: int) -> torch.Tensor:
    """The inverse of `pack_codes`: uint8 [n_out, n_in], where the packed codes are."""
    n_out, width = packed.shape
    if width != packed_width(n_in, bits):
        raise ValueError(f"{width} bytes cannot hold {n_in} codes of {bits} bits")
    parts = torch.zeros(n_out, width // bits, WORD_BYTES, dtype=torch.uint8, device=packed.device)
    parts[..., :bits] = packed.view(n_out, -1, bits)
    words = parts.view(torch.int32)[..., 0]
    codes = torch.empty(n_out, words.shape[1], WORD_CODES, dtype=torch.uint8, device=packed.device)
    for place in range(WORD_CODES):
        codes[..., place] = (words >> (bits * place)) & (2**bits - 1)
    return codes.view(n_out, -1)[:, :n_in].contiguous()
