"""Packed base codes bit by bit."""

import pytest
import torch

from kernels.dec.packing import pack_codes, packed_width, unpack_codes


@pytest.mark.parametrize("bits", [3, 4])
@pytest.mark.parametrize("n_in", [1, 7, 8, 9, 576])
def test_bits_lie_lowest_first_and_come_back(bits, n_in):
    generator = torch.Generator().manual_seed(n_in)
    codes = torch.randint(0, 2**bits, (5, n_in), dtype=torch.uint8, generator=generator)
    codes[0] = 2**bits - 1
    packed = pack_codes(codes, bits)
    assert packed.shape == (5, packed_width(n_in, bits))
    for row, data in zip(codes.tolist(), packed.tolist(), strict=True):
        number = sum(code << (bits * place) for place, code in enumerate(row))
        assert bytes(data) == number.to_bytes(len(data), "little")
    assert torch.equal(unpack_codes(packed, n_in, bits), codes)


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="does not fit"):
        pack_codes(torch.tensor([[8]], dtype=torch.uint8), 3)
    with pytest.raises(ValueError, match="cannot hold"):
        unpack_codes(torch.zeros(1, 4, dtype=torch.uint8), 9, 4)
