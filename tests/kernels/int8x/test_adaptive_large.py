"""Streams whose bits no 32-bit number counts."""

import pytest
import torch

from kernels.int8x import check_adaptive, decode_adaptive, encode_adaptive


@pytest.mark.slow
def test_more_bits_than_int32_counts():
    n_out, n_in = 4100, 100_001
    generator = torch.Generator().manual_seed(3)
    block = torch.randn(41, n_in, generator=generator).mul_(torch.logspace(0.5, 1.6, 41)[:, None])
    q = block.round_().clamp_(-127, 127).to(torch.int8).repeat(n_out // 41, 1)
    streams = encode_adaptive(q)
    assert 32 * streams.plane.numel() > 2**31
    check_adaptive(streams)
    assert torch.equal(decode_adaptive(streams), q)
