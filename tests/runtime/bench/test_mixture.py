"""Random weights at the paper's shares."""

import pytest
import torch

from kernels.int8x import entropy_bits, histogram
from runtime.bench.mixture import PAPER_SHARES, RowMixture, fitted, paper_mixture


def shares_of(q):
    magnitude = q.int().abs()
    first, both = (float((magnitude <= end).double().mean()) for end in (3, 15))
    return first, both - first, 1 - both


def test_fit_has_the_papers_shares_and_nearly_its_entropy():
    assert paper_mixture().shares() == pytest.approx(PAPER_SHARES, abs=1e-6)
    q = paper_mixture().draw(4096, 512)
    assert shares_of(q) == pytest.approx(PAPER_SHARES, abs=2e-3)
    assert entropy_bits(histogram(q)) == pytest.approx(4.66, abs=0.05)


def test_few_rows_have_the_shares_too():
    assert shares_of(paper_mixture().draw(64, 8192)) == pytest.approx(PAPER_SHARES, abs=5e-3)


@pytest.mark.parametrize("mixture", [RowMixture(2.0, 0.0), RowMixture(9.0, 0.8)])
def test_fit_finds_a_known_mixture(mixture):
    first, second, _ = mixture.shares()
    found = fitted(first, second)
    assert found.sigma == pytest.approx(mixture.sigma, rel=1e-3)
    assert found.spread == pytest.approx(mixture.spread, abs=2e-3)


def test_share_is_that_of_a_normal_row():
    normal = torch.distributions.Normal(0.0, 5.0)
    expected = float(normal.cdf(torch.tensor(3.5)) - normal.cdf(torch.tensor(-3.5)))
    assert RowMixture(5.0, 0.0).share_within(3) == pytest.approx(expected, rel=1e-6)


def test_draws_repeat_by_seed():
    mixture = paper_mixture()
    assert torch.equal(mixture.draw(8, 64, seed=3), mixture.draw(8, 64, seed=3))
    assert not torch.equal(mixture.draw(8, 64, seed=3), mixture.draw(8, 64, seed=4))


@pytest.mark.parametrize("shares", [(0.0, 0.5), (0.6, 0.4), (0.555, 0.4449999)])
def test_impossible_shares_are_refused(shares):
    with pytest.raises(ValueError, match="level"):
        fitted(*shares)
