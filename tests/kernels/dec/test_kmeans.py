"""Weighted k-means of rows against every partition there is, and against the exact optimum of longer rows."""

from itertools import combinations, pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.dec import dequantise_table
from kernels.dec.kmeans import cluster_rows, nearest_codes, quantise_table


def interval_error(x, w):
    """Weighted squared error of every interval [a, b) of sorted x about its mean, float64 [n + 1, n + 1]."""
    sums = [np.concatenate([[0], np.cumsum(w * x**p)]) for p in range(3)]
    mass, first, second = (s[None, :] - s[:, None] for s in sums)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(mass > 0, second - first**2 / mass, 0.0)


def least_error(x, w, k):
    """The optimum by dynamic programming over all starts, without any shortcut."""
    order = np.argsort(x)
    error = interval_error(x[order].astype(np.float64), w[order].astype(np.float64))
    error[np.tril_indices(len(error), -1)] = np.inf
    cost = error[0]
    for _ in range(k - 1):
        cost = (cost[:, None] + error).min(0)
    return cost[-1]


def error_of(x, w, centres):
    return float((w.double() * (x[:, None] - centres).abs().min(1).values.double().square()).sum())


def rows(n_out, n_in, seed=0):
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(n_out, n_in, generator=generator)
    return values, torch.randn(n_out, n_in, generator=generator).mul(1.5).exp()


def test_dynamic_programme_of_these_tests_agrees_with_every_partition():
    x, w = (part[0].double().numpy() for part in rows(1, 9))
    order = np.argsort(x)
    x, w = x[order], w[order]
    error = interval_error(x, w)
    borders = ([0, *inner, 9] for inner in combinations(range(1, 9), 2))
    best = min(sum(error[a, b] for a, b in pairwise(cut)) for cut in borders)
    assert least_error(x, w, 3) == pytest.approx(best)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 40), st.sampled_from([8, 16]), st.integers(0, 1000))
def test_short_rows_reach_the_optimum(n, k, seed):
    values, weights = rows(2, n, seed)
    centres = cluster_rows(values, weights, k)
    for x, w, found in zip(values, weights, centres, strict=True):
        exact = least_error(x.numpy(), np.maximum(w.numpy(), 1e-4 * float(w.mean())), k)
        assert error_of(x, w, found) <= exact * 1.005 + 1e-9 * float(w.sum())


@pytest.mark.parametrize("k", [8, 16])
@pytest.mark.parametrize("n", [300, 700])
def test_long_rows_come_within_a_thousandth(n, k):
    values, weights = rows(6, n)
    values[0] *= values[0].abs() ** 2
    centres = cluster_rows(values, weights, k)
    assert bool((centres.diff(dim=1) >= 0).all())
    found = sum(error_of(x, w, c) for x, w, c in zip(values, weights, centres, strict=True))
    exact = sum(least_error(x.numpy(), w.numpy(), k) for x, w in zip(values, weights, strict=True))
    assert exact * (1 - 1e-6) <= found <= exact * 1.001


def test_values_of_weight_nothing_do_not_matter():
    values, weights = rows(1, 200)
    weights[0, 100:] = 0
    alone = cluster_rows(values[:, :100], weights[:, :100], 8)
    x, w = values[0, :100], weights[0, :100]
    assert error_of(x, w, cluster_rows(values, weights, 8)[0]) <= 1.01 * error_of(x, w, alone[0])


@pytest.mark.parametrize("kinds", [1, 3, 8])
def test_few_different_values_are_kept_exactly(kinds):
    values = torch.arange(kinds).float().repeat(4)[None] - 2
    base = quantise_table(values, torch.ones(values.shape[1]), 3)
    assert torch.equal(dequantise_table(base), values)


def test_rows_without_any_weight_count_alike():
    values, _ = rows(2, 64)
    assert torch.equal(
        cluster_rows(values, torch.zeros(2, 64), 8), cluster_rows(values, torch.ones(2, 64), 8)
    )


@pytest.mark.parametrize("bits", [3, 4])
def test_tables_are_exact_in_bfloat16_and_codes_the_nearest(bits):
    values, weights = rows(5, 333)
    base = quantise_table(values, weights, bits)
    assert torch.equal(base.table, base.table.bfloat16().float())
    lost = (values - dequantise_table(base)).abs()
    nearest = (values[:, :, None] - base.table[:, None]).abs().amin(-1)
    torch.testing.assert_close(lost, nearest, rtol=0, atol=1e-6)


def test_one_importance_for_all_rows():
    values, weights = rows(3, 50)
    same = quantise_table(values, weights[0].expand(3, 50), 4)
    assert torch.equal(quantise_table(values, weights[0], 4).codes, same.codes)


def test_a_matrix_of_several_tiles_is_done_row_by_row():
    values, weights = rows(700, 500)
    centres = cluster_rows(values, weights, 8)
    assert torch.equal(centres[650:], cluster_rows(values[650:], weights[650:], 8))
    assert torch.equal(nearest_codes(values, centres)[650:], nearest_codes(values[650:], centres[650:]))


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), -1.0])
def test_impossible_weights_are_refused(wrong):
    values, weights = rows(1, 20)
    weights[0, 3] = wrong
    with pytest.raises(ValueError, match="finite"):
        cluster_rows(values, weights, 8)
