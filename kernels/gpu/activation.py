"""What `prepare` reads: an activation after its prologue, wherever a kernel needs a part of it."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def activation(
    x: tl.tensor, other: tl.tensor, at: tl.tensor, inside: tl.tensor, PROLOGUE: tl.constexpr
) -> tl.tensor:
    """float32 values at `at` before any common factor: x, x * norm weight, or silu(x) * other."""
    value = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
    if PROLOGUE == 1:
        value *= tl.load(other + at, mask=inside, other=0.0).to(tl.float32)
    elif PROLOGUE == 2:
        value = value / (1.0 + tl.exp(-value)) * tl.load(other + at, mask=inside, other=0.0).to(tl.float32)
    return value


@triton.jit
def factored(
    x: tl.tensor,
    other: tl.tensor,
    factors: tl.tensor,
    at: tl.tensor,
    inside: tl.tensor,
    PROLOGUE: tl.constexpr,
    FACTORS: tl.constexpr,
) -> tl.tensor:
    """`activation` times the factors of its columns."""
    value = activation(x, other, at, inside, PROLOGUE)
    if FACTORS:
        value *= tl.load(factors + at, mask=inside, other=0.0)
    return value
