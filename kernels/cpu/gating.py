"""act(gate) * up between the two MLP linears."""

from __future__ import annotations

import numpy as np

from kernels.cpu.norms import collect, narrow
from kernels.cpu.scalars import exp32
from kernels.jit import njit_relaxed

_ZERO, _ONE, _TWO = np.float32(0.0), np.float32(1.0), np.float32(2.0)
# Below, e^-g is clamped and silu(g) = g e^g would come out too large; it is 0 in float32 there.
_LOWEST = np.float32(-87.0)
_GELU_A, _GELU_B = np.float32(0.7978845608028654), np.float32(0.044715)


@njit_relaxed
def gate(
    y: np.ndarray,
    correction: np.ndarray,
    bias: np.ndarray,
    gelu: bool,
    scratch: np.ndarray,
    inverse_columns: np.ndarray,
    x: np.ndarray,
    x_bf16: np.ndarray,
) -> None:
    """x = act(first half of y) * second half; SiLU, or GELU in its tanh form. y [2n], x [n].

    x is multiplied by inverse_columns where down has such factors.
    """
    n = x.size
    collect(y, correction, bias, scratch)
    if gelu:
        for i in range(n):
            g = scratch[i]
            t = _TWO * _GELU_A * (g + _GELU_B * g * g * g)
            x[i] = g * (_ONE - _ONE / (_ONE + exp32(t))) * scratch[n + i]
    else:
        for i in range(n):
            g = scratch[i]
            part = g / (_ONE + exp32(-g)) if g >= _LOWEST else g * _ZERO
            x[i] = part * scratch[n + i]
    narrow(x, inverse_columns, x_bf16)
