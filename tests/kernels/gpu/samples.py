"""Matrices and activations that try every form, every tail and the worst of inputs."""

from __future__ import annotations

import torch


def spread_rows(rows: int, columns: int, sigma: float, spread: float = 0.6, seed: int = 0) -> torch.Tensor:
    """int8 rows of Gaussians, each with its own width."""
    generator = torch.Generator().manual_seed(seed + rows * 7 + columns)
    widths = sigma * torch.exp(spread * torch.randn(rows, 1, generator=generator))
    values = torch.randn(rows, columns, generator=generator) * widths
    return values.round().clamp(-127, 127).to(torch.int8)


def worst(name: str, rows: int, columns: int) -> torch.Tensor:
    """Inputs that a kernel made for bell curves could fail on."""
    generator = torch.Generator().manual_seed(5)
    if name == "zeros":
        return torch.zeros(rows, columns, dtype=torch.int8)
    if name == "extremes":
        return torch.where(torch.rand(rows, columns, generator=generator) < 0.5, -128, 127).to(torch.int8)
    if name == "uniform":
        return torch.randint(-128, 128, (rows, columns), generator=generator).to(torch.int8)
    narrow = torch.randint(-3, 4, (rows, columns), generator=generator)
    if name == "one loud row":
        narrow[rows // 2] = torch.randint(4, 8, (columns,), generator=generator)
    elif name == "bursts":
        # A run of escapes longer than a line of the stream, within the quarter a row may have.
        narrow[:, columns // 8 : columns // 3] = torch.randint(
            -7, 8, (rows, columns // 3 - columns // 8), generator=generator
        )
    elif name == "spikes":
        narrow[torch.rand(rows, columns, generator=generator) < 0.02] = -127
    return narrow.to(torch.int8)


WORST = ("zeros", "extremes", "uniform", "one loud row", "bursts", "spikes")


def with_outliers(batch: int, columns: int, seed: int = 0) -> torch.Tensor:
    """Activations with a few values fifty times the rest."""
    x = torch.randn(batch, columns, generator=torch.Generator().manual_seed(seed))
    x[:, ::97] *= 50
    return x
