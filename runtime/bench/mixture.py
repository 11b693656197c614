"""Random int8 weights that fall into the INT8-X paper's levels as often as its model's do."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import torch

# |q| <= 3, <= 15 and above, of MiniCPM5-1B's weights with one scale a matrix: the paper, section 2.1.
PAPER_SHARES = (0.555, 0.404, 0.041)
_LEVEL_ENDS = (3, 15)
# Nodes of the integral over the rows' spread: the normal density is below 1e-11 beyond 7.
_NODES, _REACH = 401, 7.0
_HALVINGS = 40


@dataclass(frozen=True, slots=True)
class RowMixture:
    """Normal rows; a row's standard deviation is `sigma` steps times a log-normal factor of `spread`."""

    sigma: float
    spread: float

    def share_within(self, limit: int) -> float:
        """Probability that |q| <= limit."""
        z = torch.linspace(-_REACH, _REACH, _NODES, dtype=torch.float64)
        density = torch.exp(-z * z / 2)
        ratio = (limit + 0.5) / (self.sigma * torch.exp(self.spread * z))
        return float((torch.erf(ratio / math.sqrt(2)) * density).sum() / density.sum())

    def shares(self) -> tuple[float, float, float]:
        """Probabilities of the three levels of (3, 5, 8)."""
        first, both = (self.share_within(end) for end in _LEVEL_ENDS)
        return first, both - first, 1 - both

    def draw(self, n_out: int, n_in: int, device: torch.device | str = "cpu", seed: int = 0) -> torch.Tensor:
        """int8 [n_out, n_in]; the same for the same seed and device.

        Spreads are the quantiles of their distribution in random order, so that few rows have its shares too.
        """
        generator = torch.Generator(device).manual_seed(seed)
        places = torch.randperm(n_out, generator=generator, device=device)
        rows = torch.special.ndtri((places + 0.5) / n_out)[:, None]
        values = torch.randn(n_out, n_in, generator=generator, device=device)
        values *= self.sigma * torch.exp(self.spread * rows)
        return values.round_().clamp_(-127, 127).to(torch.int8)


def fitted(first: float, second: float) -> RowMixture:
    """The mixture with these shares of |q| <= 3 and 3 < |q| <= 15; ValueError where no mixture has them."""
    wanted = first + second
    if not 0 < first < wanted < 1:
        raise ValueError(f"shares {first} and {second} leave no level empty and none full")
    if _with_first(0.0, first).share_within(_LEVEL_ENDS[1]) < wanted:
        raise ValueError(
            f"rows of one normal distribution have more than {1 - wanted:g} above level 2 already"
        )
    spread = _root(lambda spread: _with_first(spread, first).share_within(_LEVEL_ENDS[1]) - wanted, 0.0, 4.0)
    return _with_first(spread, first)


@cache
def paper_mixture() -> RowMixture:
    """The mixture with the paper's shares; it has 4.6 bits of entropy, the paper's model 4.66."""
    return fitted(*PAPER_SHARES[:2])


def _with_first(spread: float, share: float) -> RowMixture:
    """The sigma that gives level 1 its share, for a spread."""
    log_sigma = _root(
        lambda x: RowMixture(math.exp(x), spread).share_within(_LEVEL_ENDS[0]) - share, -5.0, 12.0
    )
    return RowMixture(math.exp(log_sigma), spread)


def _root(falling: Callable[[float], float], low: float, high: float) -> float:
    """Where a falling function is zero, by bisection."""
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if falling(middle) > 0 else (low, middle)
    return (low + high) / 2
