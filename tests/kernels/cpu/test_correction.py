"""The compiled correction against the reference selection and a dense product."""

import numpy as np
import pytest
import torch

from kernels import cpu
from kernels.cpu.halves import pack_halves, unpack_halves
from kernels.dec.chunks import chunk_bounds, chunk_share
from kernels.dec.selection import bucket_bounds, bucket_mask


def bits(tensor):
    return tensor.bfloat16().view(torch.int16).numpy()


def run(x, k_chunk, profile, codes, scale):
    """The chosen channels and the correction."""
    total, chosen, out = raw(x, k_chunk, profile, codes, scale)
    return chosen[:total], out


def raw(x, k_chunk, profile, codes, scale):
    """The layer sits in the middle of a stack of three whose neighbours hold other numbers."""
    n_in, n_out = codes.shape
    bounds = chunk_bounds(n_in)
    counts = [chunk_share(k_chunk, b - a) for a, b in bounds]
    edges = [bucket_bounds(profile[a:b], max(k, 1)) for (a, b), k in zip(bounds, counts, strict=True)]
    packed = pack_halves(codes)
    stack = torch.stack([255 - packed, packed, packed.flip(0)])
    half = packed.shape[1]
    chosen, out = np.full(n_in, -1, np.int32), np.full(2 * half, 7.0, np.float32)
    total = cpu.correct(
        x.numpy(), 1, np.array([[9] * len(counts), counts, [9] * len(counts)], np.int64),
        np.array([np.ones((len(counts), 2)), edges, np.ones((len(counts), 2))], np.float32),
        stack.numpy(), bits(torch.stack([scale * 0, scale, scale * 2])),
        np.empty(n_in, np.uint8), chosen, out,
    )  # fmt: skip
    return total, chosen, torch.from_numpy(out[:n_out])


@pytest.mark.parametrize("n_out", [1, 7, 8, 96])
def test_codes_survive_packing(n_out):
    codes = torch.randint(-8, 8, (5, n_out), dtype=torch.int8)
    assert torch.equal(unpack_halves(pack_halves(codes), n_out), codes)
    assert pack_halves(codes).shape == (5, -(-n_out // 2))


def case(n_in, n_out, seed, spread=1.0):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n_in, generator=g) * torch.exp(spread * torch.randn(n_in, generator=g))
    parts = [torch.randn(16, b - a, generator=g).abs().amax(0) for a, b in chunk_bounds(n_in)]
    profile = torch.cat([p.sort(descending=True).values for p in parts])
    codes = torch.randint(-7, 8, (n_in, n_out), generator=g, dtype=torch.int8)
    return x, profile, codes, torch.rand(n_out, generator=g).bfloat16().float()


@pytest.mark.parametrize("n_out", [40, 41])
@pytest.mark.parametrize("n_in", [576, 1024, 1536, 2500, 7])
@pytest.mark.parametrize("k_chunk", [1, 2, 8, 33, 128, 1024])
def test_selects_and_multiplies_as_the_reference(n_in, k_chunk, n_out):
    for seed in range(8):
        x, profile, codes, scale = case(n_in, n_out, seed)
        chosen, out = run(x, k_chunk, profile, codes, scale)
        mask = bucket_mask(x[None], k_chunk, profile)[0]
        assert torch.equal(torch.from_numpy(chosen).long().sort().values, mask.nonzero().flatten())
        if mask.any():
            expected = ((x * mask).double() @ codes.double() * scale).float()
            assert (out - expected).norm() <= 1e-5 * expected.norm()


def test_no_channels_leave_the_output_alone():
    x, profile, codes, scale = case(576, 40, 1)
    chosen, out = run(x, 0, profile, codes, scale)
    assert len(chosen) == 0
    assert (out == 7.0).all()


def test_ties_go_to_the_lowest_index():
    _, profile, codes, scale = case(1024, 8, 2)
    chosen, _ = run(torch.ones(1024), 5, profile, codes, scale)
    assert chosen.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("at", [0, 100, 1023, 1024, 1535])
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_one_value_that_is_not_finite_leaves_the_token_uncorrected(bad, at):
    x, profile, codes, scale = case(1536, 8, 3)
    x[at] = bad
    total, _, out = raw(x, 16, profile, codes, scale)
    assert total == cpu.NOT_FINITE
    assert (out == 7.0).all()


def test_the_largest_finite_values_are_corrected():
    x, profile, codes, scale = case(1536, 8, 3)
    x[5], x[6] = torch.finfo(torch.float32).max, -torch.finfo(torch.float32).max
    chosen, _ = run(x, 16, profile, codes, scale)
    assert {5, 6} <= set(chosen.tolist())
