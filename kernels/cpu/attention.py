"""Attention of one new token over the KV cache.

Inner loops index flat arrays by unsigned numbers: a view per row would cost two atomic operations each, and
a signed index a check for negative values that keeps loops from vectorising.
"""

from __future__ import annotations

import numpy as np

from kernels.cpu.norms import collect, narrow, normalise
from kernels.cpu.scalars import exp32
from kernels.jit import njit_relaxed

U = np.uint64
# Positions whose keys and values stay in the first-level cache while all query heads of a group use them.
BLOCK = 128
_ZERO, _ONE, _LOWEST = np.float32(0.0), np.float32(1.0), np.float32(-np.inf)


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
    inverse_columns: np.ndarray,
    x: np.ndarray,
    x_bf16: np.ndarray,
) -> None:
    """Collect qkv, normalise and rotate, write K and V at `position`, attend to positions first..position.

    y [q + k + v]; keys float32 [kv_heads, head_dim, stride], values float32 [kv_heads, context, head_dim];
    cos, sin [context, rotary / 2]; scores float32 [>= position + 1] scratch; x float32 and x_bf16 [q]: the
    input of o, times inverse_columns where o has such factors.
    """
    kv_heads, dim, stride = keys.shape
    collect(y, correction, bias, scratch)
    q_size = x.size
    kv_size = kv_heads * dim
    cosines, sines = cos[position], sin[position]
    _rotate_heads(scratch[:q_size], q_norm, eps, cosines, sines, dim)
    _rotate_heads(scratch[q_size : q_size + kv_size], k_norm, eps, cosines, sines, dim)
    flat_keys, flat_values = keys.reshape(-1), values.reshape(-1)
    for head in range(kv_heads):
        at = q_size + head * dim
        for i in range(dim):
            keys[head, i, position] = scratch[at + i]
            values[head, position, i] = scratch[at + kv_size + i]
    group = q_size // kv_size
    context = values.shape[1]
    for head in range(q_size // dim):
        kv = head // group
        _attend_head(
            scratch,
            head * dim,
            dim,
            flat_keys,
            kv * dim * stride,
            stride,
            flat_values,
            kv * context * dim,
            first,
            position + 1,
            scale,
            scores,
            x,
        )
    narrow(x, inverse_columns, x_bf16)


@njit_relaxed
def _rotate_heads(
    x: np.ndarray, norm: np.ndarray, eps: np.float32, cos: np.ndarray, sin: np.ndarray, dim: int
) -> None:
    half = cos.size
    for start in range(0, x.size, dim):
        if norm.size:
            head = x[start : start + dim]
            normalise(head, norm, eps, head)
        low, high = U(start), U(start + half)
        for i in range(U(half)):
            a, b = x[low + i], x[high + i]
            x[low + i] = a * cos[i] - b * sin[i]
            x[high + i] = b * cos[i] + a * sin[i]


@njit_relaxed
def _attend_head(
    q: np.ndarray,
    q_at: int,
    dim: int,
    keys: np.ndarray,
    key_at: int,
    stride: int,
    values: np.ndarray,
    value_at: int,
    first: int,
    end: int,
    scale: np.float32,
    scores: np.ndarray,
    out: np.ndarray,
) -> None:
    """One query head at q[q_at:] over its keys and values; out[q_at:] gets the result."""
    for start in range(first, end, BLOCK):
        count = min(BLOCK, end - start)
        _scores(q, q_at, dim, keys, key_at + start, stride, count, scale, scores, start)
    _softmax(scores, first, end)
    for i in range(q_at, q_at + dim):
        out[i] = _ZERO
    _add_weighted(scores, first, end, values, value_at + first * dim, dim, out, q_at)


@njit_relaxed
def _scores(
    q: np.ndarray,
    q_at: int,
    dim: int,
    keys: np.ndarray,
    key_at: int,
    stride: int,
    count: int,
    scale: np.float32,
    out: np.ndarray,
    out_at: int,
) -> None:
    """out[out_at + t] = scale * sum over i of q[q_at + i] * keys[key_at + i * stride + t]; eight i a pass."""
    n, o, s = U(count), U(out_at), U(stride)
    whole = U(dim - dim % 8)
    for t in range(n):
        out[o + t] = _ZERO
    for i in range(U(0), whole, U(8)):
        p = U(q_at) + i
        a, b, c, d = q[p] * scale, q[p + U(1)] * scale, q[p + U(2)] * scale, q[p + U(3)] * scale
        e, f, g, h = q[p + U(4)] * scale, q[p + U(5)] * scale, q[p + U(6)] * scale, q[p + U(7)] * scale
        ra = U(key_at) + i * s
        rb, rc, rd, re = ra + s, ra + U(2) * s, ra + U(3) * s, ra + U(4) * s
        rf, rg, rh = ra + U(5) * s, ra + U(6) * s, ra + U(7) * s
        for t in range(n):
            low = a * keys[ra + t] + b * keys[rb + t] + c * keys[rc + t] + d * keys[rd + t]
            high = e * keys[re + t] + f * keys[rf + t] + g * keys[rg + t] + h * keys[rh + t]
            out[o + t] += low + high
    for i in range(whole, U(dim)):
        a, ra = q[U(q_at) + i] * scale, U(key_at) + i * s
        for t in range(n):
            out[o + t] += a * keys[ra + t]


@njit_relaxed
def _softmax(scores: np.ndarray, first: int, end: int) -> None:
    start, stop = U(first), U(end)
    top = _LOWEST
    for t in range(start, stop):
        top = max(top, scores[t])
    for t in range(start, stop):
        scores[t] = exp32(scores[t] - top)
    total = _ZERO
    for t in range(start, stop):
        total += scores[t]
    inverse = _ONE / total
    for t in range(start, stop):
        scores[t] *= inverse


@njit_relaxed
def _add_weighted(
    weights: np.ndarray,
    first: int,
    end: int,
    values: np.ndarray,
    value_at: int,
    dim: int,
    out: np.ndarray,
    out_at: int,
) -> None:
    """out[out_at + i] += sum of weights[t] * values[value_at + (t - first) * dim + i]; eight t a pass."""
    n, o, s = U(dim), U(out_at), U(dim)
    whole = end - (end - first) % 8
    for t in range(U(first), U(whole), U(8)):
        a, b, c, d = weights[t], weights[t + U(1)], weights[t + U(2)], weights[t + U(3)]
        e, f, g, h = weights[t + U(4)], weights[t + U(5)], weights[t + U(6)], weights[t + U(7)]
        ra = U(value_at) + (t - U(first)) * s
        rb, rc, rd, re = ra + s, ra + U(2) * s, ra + U(3) * s, ra + U(4) * s
        rf, rg, rh = ra + U(5) * s, ra + U(6) * s, ra + U(7) * s
        for i in range(n):
            low = a * values[ra + i] + b * values[rb + i] + c * values[rc + i] + d * values[rd + i]
            high = e * values[re + i] + f * values[rf + i] + g * values[rg + i] + h * values[rh + i]
            out[o + i] += low + high
    for t in range(U(whole), U(end)):
        weight, ra = weights[t], U(value_at) + (t - U(first)) * s
        for i in range(n):
            out[o + i] += weight * values[ra + i]
