"""Small quantisation problems, and the loss that methods are to lower."""

import torch

from kernels.dec import dequantise


def problem(n_out, n_in, seed=0):
    """Weights [n_out, n_in], and the second moment [n_in, n_in] of strongly correlated inputs."""
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(4 * n_in, n_in, generator=generator)
    inputs = inputs @ torch.randn(n_in, n_in, generator=generator)
    moment = inputs.t() @ inputs / len(inputs)
    return torch.randn(n_out, n_in, generator=generator), moment


def losses(weight, moment, base):
    """tr(E H E') row by row, float64 [n_out]."""
    error = (weight - dequantise(base)).double()
    return ((error @ moment.double()) * error).sum(1)


def loss(weight, moment, base):
    """tr(E H E')."""
    return float(losses(weight, moment, base).sum())
