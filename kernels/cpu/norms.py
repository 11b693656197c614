"""Collecting a product, residual connection and RMSNorm, fused around each linear."""

from __future__ import annotations

import numpy as np

from kernels.cpu.scalars import from_bf16, to_bf16
from kernels.jit import njit_relaxed


@njit_relaxed
def collect(y: np.ndarray, correction: np.ndarray, bias: np.ndarray, out: np.ndarray) -> None:
    """out = y (bf16 bits) + correction + bias, float32 [n_out]."""
    for i in range(y.size):
        out[i] = from_bf16(y[i])
    for i in range(correction.size):
        out[i] += correction[i]
    for i in range(bias.size):
        out[i] += bias[i]


@njit_relaxed
def normalise(x: np.ndarray, weight: np.ndarray, eps: np.float32, out: np.ndarray) -> None:
    """RMSNorm of one vector, out = x / rms(x) * weight; out may be x.

    NaN where the sum of squares is not finite: x / infinity would be zeros, which look sound.
    """
    total = np.float32(0.0)
    for i in range(x.size):
        total += x[i] * x[i]
    factor = np.float32(1.0) / np.sqrt(total / np.float32(x.size) + eps) + total * np.float32(0.0)
    for i in range(x.size):
        out[i] = x[i] * factor * weight[i]


@njit_relaxed
def finish_block(
    h: np.ndarray,
    y: np.ndarray,
    correction: np.ndarray,
    bias: np.ndarray,
    post_norm: np.ndarray,
    eps: np.float32,
    scratch: np.ndarray,
) -> None:
    """h += (post-norm of) the product y: the residual connection behind o and down."""
    part = scratch[: h.size]
    collect(y, correction, bias, part)
    if post_norm.size:
        normalise(part, post_norm, eps, part)
    for i in range(h.size):
        h[i] += part[i]


@njit_relaxed
def start_linear(
    h: np.ndarray,
    weight: np.ndarray,
    eps: np.float32,
    inverse_columns: np.ndarray,
    x: np.ndarray,
    x_bf16: np.ndarray,
) -> None:
    """Input of the linear that follows a norm: x float32 and x_bf16 bits, both [n_in]."""
    normalise(h, weight, eps, x)
    narrow(x, inverse_columns, x_bf16)


@njit_relaxed
def narrow(x: np.ndarray, inverse_columns: np.ndarray, x_bf16: np.ndarray) -> None:
    """x_bf16 = bits of x, after x *= inverse_columns where a linear has such factors; all [n_in]."""
    if inverse_columns.size:
        for i in range(x.size):
            x[i] *= inverse_columns[i]
            x_bf16[i] = to_bf16(x[i])
    else:
        for i in range(x.size):
            x_bf16[i] = to_bf16(x[i])
