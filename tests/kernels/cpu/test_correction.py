"""The compiled correction against the reference selection and a dense product."""

import numpy as np
import pytest
import torch

from kernels import cpu
from kernels.dec.chunks import chunk_bounds, chunk_share
from kernels.dec.selection import bucket_bounds, bucket_mask


def run(x, k_chunk, profile, codes, scale):
    n_in, n_out = codes.shape
    bounds = chunk_bounds(n_in)
    counts = [chunk_share(k_chunk, b - a) for a, b in bounds]
    edges = [bucket_bounds(profile[a:b], max(k, 1)) for (a, b), k in zip(bounds, counts, strict=True)]
    chosen, out = np.full(n_in, -1, np.int32), np.full(n_out, 7.0, np.float32)
    total = cpu.correct(
        x.numpy(), np.array([a for a, _ in bounds] + [n_in], np.int64), np.array(counts, np.int64),
        np.array([e[0] for e in edges], np.float32), np.array([e[1] for e in edges], np.float32),
        codes.numpy(), scale.numpy(), np.empty(n_in, np.uint8), chosen, out,
    )  # fmt: skip
    return chosen[:total], torch.from_numpy(out)


def case(n_in, n_out, seed, spread=1.0):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n_in, generator=g) * torch.exp(spread * torch.randn(n_in, generator=g))
    parts = [torch.randn(16, b - a, generator=g).abs().amax(0) for a, b in chunk_bounds(n_in)]
    profile = torch.cat([p.sort(descending=True).values for p in parts])
    codes = torch.randint(-7, 8, (n_in, n_out), generator=g, dtype=torch.int8)
    return x, profile, codes, torch.rand(n_out, generator=g)


@pytest.mark.parametrize("n_in", [576, 1024, 1536, 2500, 7])
@pytest.mark.parametrize("k_chunk", [1, 2, 8, 33, 128, 1024])
def test_selects_and_multiplies_as_the_reference(n_in, k_chunk):
    for seed in range(8):
        x, profile, codes, scale = case(n_in, 40, seed)
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


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_non_finite_activations_select_the_right_number_of_channels(bad):
    x, profile, codes, scale = case(1024, 8, 3)
    x[100:200] = bad
    chosen, _ = run(x, 16, profile, codes, scale)
    mask = bucket_mask(x[None], 16, profile)[0]
    assert sorted(chosen.tolist()) == mask.nonzero().flatten().tolist()
