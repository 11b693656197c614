"""What `prepare` reads: an activation after its prologue, wherever a kernel needs a part of it."""

# A return under a constexpr `if` needs its `else`: triton would compile what follows it as well.
# ruff: noqa: RET505

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl


@triton.jit
def inverse_rms(squares: tl.tensor, columns: tl.tensor, eps: tl.tensor) -> Any:
    """1 / rms by a sum of squares of so many values; NaN where it is not finite, for 0 would look sound."""
    return tl.where(squares < float("inf"), 1.0 / tl.sqrt(squares / columns + eps), float("nan"))


@triton.jit
def gelu_tanh(x: tl.tensor) -> tl.tensor:
    """x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))), written with one exponential."""
    inner = 1.5957691216057308 * (x + 0.044715 * x * x * x)
    return x / (1.0 + tl.exp(-inner))


@triton.jit
def activation(
    x: tl.tensor,
    other: tl.tensor,
    factors: tl.tensor,
    at: tl.tensor,
    inside: tl.tensor,
    PROLOGUE: tl.constexpr,
    FACTORS: tl.constexpr,
) -> Any:
    """float32 values at `at` before any common factor, and x there.

    The value is x, x * norm weight, silu(x) * other or gelu(x) * other, times its column's factor.
    """
    raw = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
    value = raw
    if PROLOGUE == 1:
        value = raw * tl.load(other + at, mask=inside, other=0.0).to(tl.float32)
    elif PROLOGUE == 2:
        value = raw / (1.0 + tl.exp(-raw)) * tl.load(other + at, mask=inside, other=0.0).to(tl.float32)
    elif PROLOGUE == 3:
        value = gelu_tanh(raw) * tl.load(other + at, mask=inside, other=0.0).to(tl.float32)
    if FACTORS:
        value *= tl.load(factors + at, mask=inside, other=0.0)
    return value, raw


@triton.jit
def activation_bound(
    x: tl.tensor,
    other: tl.tensor,
    factors: tl.tensor,
    at: tl.tensor,
    inside: tl.tensor,
    PROLOGUE: tl.constexpr,
    FACTORS: tl.constexpr,
) -> Any:
    """At least the magnitude of `activation`'s values and at most twice, up to rounding, and x there.

    Between them lies silu's 1 / (1 + e^-|x|): its exponential of the other sign, and its division, cost more
    than the reading. What is not finite in the one is not finite in the other.
    """
    if PROLOGUE == 2:
        raw = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
        gate = tl.abs(raw) * tl.exp(tl.minimum(raw, 0.0))
        value = gate * tl.load(other + at, mask=inside, other=0.0).to(tl.float32)
        if FACTORS:
            value *= tl.load(factors + at, mask=inside, other=0.0)
        return tl.abs(value), raw
    else:
        value, raw = activation(x, other, factors, at, inside, PROLOGUE, FACTORS)
        return tl.abs(value), raw
