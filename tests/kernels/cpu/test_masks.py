"""Compiled masks against the plain torch ones, bit for bit."""

import pytest
import torch

from kernels.cpu.masks import bucket_rows, exact_rows
from kernels.dec import bucket_mask, exact_mask


def inputs(tokens, n_in, kind):
    generator = torch.Generator().manual_seed(n_in + tokens)
    x = torch.randn(tokens, n_in, generator=generator)
    if kind == "ties":
        return (2 * x).round() / 2
    return torch.zeros_like(x) if kind == "zeros" else x * torch.rand(n_in, generator=generator).exp()


@pytest.mark.parametrize("kind", ["any", "ties", "zeros"])
@pytest.mark.parametrize("n_in", [7, 576, 1024, 1536, 2100])
@pytest.mark.parametrize("k_chunk", [0, 1, 32, 700, 1024])
def test_masks_are_the_references(kind, n_in, k_chunk):
    x, seen = inputs(9, n_in, kind), inputs(5, n_in, "any")
    profile = torch.cat([part.abs().amax(0).sort(descending=True).values for part in seen.split(1024, dim=1)])
    got = torch.from_numpy(bucket_rows(x.numpy(), k_chunk, profile.numpy()))
    assert torch.equal(got, bucket_mask(x, k_chunk, profile))
    assert torch.equal(torch.from_numpy(exact_rows(x.numpy(), k_chunk)), exact_mask(x, k_chunk))


def test_slices_of_larger_inputs_are_taken():
    x = inputs(16, 600, "any")
    assert torch.equal(torch.from_numpy(exact_rows(x[::8].numpy(), 50)), exact_mask(x[::8], 50))
