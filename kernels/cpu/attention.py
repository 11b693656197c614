"""Attention of one new token over the KV cache."""

from __future__ import annotations

import numpy as np

from kernels.cpu.norms import collect, normalise
from kernels.cpu.scalars import exp32, to_bf16
from kernels.jit import njit_relaxed


@njit_relaxed
def attend(
    y: np.ndarray,
    correction: np.ndarray,
    bias: np.ndarray,
    q_norm: np.ndarray,
    k_norm: np.ndarray,
    eps: np.float32,
    cos: np.ndarray,
    sin: np.ndarray,
    keys: np.ndarray,
    values: np.ndarray,
    position: int,
    first: int,
    scale: np.float32,
    scratch: np.ndarray,
    scores: np.ndarray,
    x: np.ndarray,
    x_bf16: np.ndarray,
) -> None:
    """Collect qkv, normalise and rotate, write K and V at `position`, attend to positions first..position.

    y [q + k + v]; keys, values float32 [kv_heads, context, head_dim]; cos, sin [context, rotary / 2];
    scores float32 [query heads per group, >= position + 1]; x float32 and x_bf16 [q]: the input of o.
    """
    kv_heads, _, dim = keys.shape
    collect(y, correction, bias, scratch)
    q_size = x.size
    kv_size = kv_heads * dim
    q, k, v = scratch[:q_size], scratch[q_size : q_size + kv_size], scratch[q_size + kv_size :]
    _rotate_heads(q, q_norm, eps, cos[position], sin[position], dim)
    _rotate_heads(k, k_norm, eps, cos[position], sin[position], dim)
    group = q_size // kv_size
    for head in range(kv_heads):
        keys[head, position] = k[head * dim : (head + 1) * dim]
        values[head, position] = v[head * dim : (head + 1) * dim]
        for g in range(group):
            at = (head * group + g) * dim
            row = scores[g]
            _scores(q[at : at + dim], keys[head], first, position, scale, row)
            _weighted_sum(row, values[head], first, position, x[at : at + dim])
    for i in range(q_size):
        x_bf16[i] = to_bf16(x[i])


@njit_relaxed
def _rotate_heads(
    x: np.ndarray, norm: np.ndarray, eps: np.float32, cos: np.ndarray, sin: np.ndarray, dim: int
) -> None:
    half = cos.size
    for start in range(0, x.size, dim):
        head = x[start : start + dim]
        if norm.size:
            normalise(head, norm, eps, head)
        for i in range(half):
            a, b = head[i], head[half + i]
            head[i] = a * cos[i] - b * sin[i]
            head[half + i] = b * cos[i] + a * sin[i]


@njit_relaxed
def _scores(
    q: np.ndarray, keys: np.ndarray, first: int, last: int, scale: np.float32, out: np.ndarray
) -> None:
    """Softmax numerators in out[first..last], their sum's inverse folded in."""
    top = np.float32(-np.inf)
    for t in range(first, last + 1):
        key = keys[t]
        total = np.float32(0.0)
        for i in range(q.size):
            total += q[i] * key[i]
        out[t] = total * scale
        top = max(top, out[t])
    total = np.float32(0.0)
    for t in range(first, last + 1):
        out[t] = exp32(out[t] - top)
        total += out[t]
    inverse = np.float32(1.0) / total
    for t in range(first, last + 1):
        out[t] *= inverse


@njit_relaxed
def _weighted_sum(weights: np.ndarray, values: np.ndarray, first: int, last: int, out: np.ndarray) -> None:
    out[:] = np.float32(0.0)
    for t in range(first, last + 1):
        weight, value = weights[t], values[t]
        for i in range(out.size):
            out[i] += weight * value[i]
