"""Channel choice against slow loops that say the rule aloud."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.dec import bucket_mask, chunk_bounds, chunk_share, exact_mask, random_mask, static_mask


def brute_bucket(values, k, profile):
    """One chunk, one token: fill 32 lists, then take from the top."""
    one = torch.float32
    bk0, bk15 = torch.tensor(profile[0], dtype=one), torch.tensor(profile[k - 1], dtype=one)
    buckets = [[] for _ in range(32)]
    for index, value in enumerate(values):
        size = torch.tensor(abs(value), dtype=one)
        if size >= bk15:
            width = bk0 - bk15
            place = (bk0 - size) * (16 / width) if width > 0 else torch.tensor(0.0)
            buckets[int(min(max(float(place), 0), 15))].append(index)
        else:
            place = (bk15 - size) * (16 / bk15)
            buckets[16 + int(min(max(float(place), 0), 15))].append(index)
    chosen = []
    for bucket in buckets:
        chosen += bucket[: k - len(chosen)]
    return set(chosen)


def chosen(mask_row, start, stop):
    return set(mask_row[start:stop].nonzero()[:, 0].tolist())


def inputs(tokens, n_in, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(tokens, n_in, generator=generator) * torch.rand(n_in, generator=generator)
    profile = torch.cat(
        [x[:, a:b].abs().sort(dim=1, descending=True).values.amax(0) for a, b in chunk_bounds(n_in)]
    )
    return x, profile


@pytest.mark.parametrize("n_in", [40, 576, 1024, 1536])
@pytest.mark.parametrize("k_chunk", [1, 8, 32, 300])
def test_buckets_match_the_loop(n_in, k_chunk):
    x, profile = inputs(4, n_in)
    x = x * torch.tensor([[1.0], [0.3], [3.0], [1.0]])
    mask = bucket_mask(x, k_chunk, profile)
    for token in range(4):
        for start, stop in chunk_bounds(n_in):
            k = chunk_share(k_chunk, stop - start)
            expected = (
                brute_bucket(x[token, start:stop].tolist(), k, profile[start:stop].tolist()) if k else set()
            )
            assert chosen(mask[token], start, stop) == expected


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from([0.0, 0.5, -0.5, 1.0, 2.0, -3.0, 100.0]), min_size=3, max_size=40),
    st.integers(1, 40),
    st.sampled_from([(1.0, 1.0), (2.0, 0.5), (0.0, 0.0), (5.0, 0.0)]),
)
def test_buckets_match_the_loop_on_ties_and_degenerate_bounds(values, k, bounds):
    k = min(k, len(values))
    profile = [bounds[0]] + [bounds[1]] * (len(values) - 1)
    k_chunk = -(-k * 1024 // len(values))
    share = chunk_share(k_chunk, len(values))
    mask = bucket_mask(torch.tensor([values]), k_chunk, torch.tensor(profile))
    assert mask.sum() == share
    assert chosen(mask[0], 0, len(values)) == brute_bucket(values, share, profile)


def test_exact_takes_the_largest_of_each_chunk():
    x, _ = inputs(5, 1536)
    mask = exact_mask(x, 32)
    for token in range(5):
        for start, stop in chunk_bounds(1536):
            k = chunk_share(32, stop - start)
            ranked = sorted(range(stop - start), key=lambda i: -abs(float(x[token, start + i])))
            assert chosen(mask[token], start, stop) == set(ranked[:k])


def test_ties_go_to_the_lowest_index():
    x = torch.ones(1, 1024)
    for mask in (exact_mask(x, 5), bucket_mask(x, 5, torch.ones(1024))):
        assert chosen(mask[0], 0, 1024) == {0, 1, 2, 3, 4}


def test_buckets_recall_most_of_the_exact_choice():
    x, profile = inputs(64, 1024)
    exact, bucket = exact_mask(x, 64), bucket_mask(x, 64, profile)
    assert (exact & bucket).sum() / exact.sum() > 0.75


def test_static_is_the_same_for_every_token():
    x, _ = inputs(6, 1100)
    importance = torch.arange(1100).float()
    mask = static_mask(x, 64, importance)
    assert (mask == mask[0]).all()
    assert chosen(mask[0], 0, 1024) == set(range(960, 1024))
    assert chosen(mask[0], 1024, 1100) == set(range(76 - chunk_share(64, 76), 76))


def test_random_is_seeded_differs_by_token_and_counts_right():
    x = torch.ones(8, 1024)
    first = random_mask(x, 16, torch.Generator().manual_seed(3))
    again = random_mask(x, 16, torch.Generator().manual_seed(3))
    assert torch.equal(first, again)
    assert (first.sum(1) == 16).all()
    assert not torch.equal(first[0], first[1])


def test_not_a_number_is_last_and_infinity_first():
    x = torch.tensor([[float("nan"), 1.0, float("inf"), 2.0]])
    profile = torch.tensor([4.0, 3.0, 2.0, 1.0])
    for mask in (exact_mask(x, 512), bucket_mask(x, 512, profile)):
        assert mask.tolist() == [[False, False, True, True]]


@pytest.mark.parametrize(
    ("k_chunk", "length", "share"),
    [(8, 1024, 8), (8, 512, 4), (8, 576, 4), (24, 576, 14), (0, 576, 0), (2000, 100, 100), (1, 64, 0)],
)
def test_share_of_a_short_chunk(k_chunk, length, share):
    assert chunk_share(k_chunk, length) == share
