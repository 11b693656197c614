"""Attention of one new token over the KV cache."""

from __future__ import annotations

import numpy as np

from kernels.cpu.norms import collect, normalise
from kernels.cpu.scalars import exp32, to_bf16
from kernels.jit import njit_relaxed

BLOCK = 128


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

    y [q + k + v]; keys float32 [kv_heads, head_dim, context] (head_dim a multiple of 8), values float32
    [kv_heads, context, head_dim]; cos, sin [context, rotary / 2];
    scores float32 [query heads per group, >= position + 1]; x float32 and x_bf16 [q]: the input of o.
    """
    kv_heads, dim, _ = keys.shape
    collect(y, correction, bias, scratch)
    q_size = x.size
    kv_size = kv_heads * dim
    q, k, v = scratch[:q_size], scratch[q_size : q_size + kv_size], scratch[q_size + kv_size :]
    _rotate_heads(q, q_norm, eps, cos[position], sin[position], dim)
    _rotate_heads(k, k_norm, eps, cos[position], sin[position], dim)
    group = q_size // kv_size
    for head in range(kv_heads):
        keys[head, :, position] = k[head * dim : (head + 1) * dim]
        values[head, position] = v[head * dim : (head + 1) * dim]
        heads = slice(head * group * dim, (head + 1) * group * dim)
        _attend_group(
            q[heads].reshape(group, dim),
            keys[head],
            values[head],
            first,
            position + 1,
            scale,
            scores,
            x[heads].reshape(group, dim),
        )
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
def _attend_group(
    q: np.ndarray,
    keys: np.ndarray,
    values: np.ndarray,
    first: int,
    end: int,
    scale: np.float32,
    scores: np.ndarray,
    out: np.ndarray,
) -> None:
    """Query heads that share one key/value head; blocks of positions stay in the first-level cache."""
    for start in range(first, end, BLOCK):
        stop = min(start + BLOCK, end)
        for g in range(q.shape[0]):
            _scores(q[g], keys, start, stop, scale, scores[g])
    out[:] = np.float32(0.0)
    for g in range(q.shape[0]):
        _softmax(scores[g, first:end])
    for start in range(first, end, BLOCK):
        stop = min(start + BLOCK, end)
        for g in range(q.shape[0]):
            _add_weighted(scores[g], values, start, stop, out[g])


@njit_relaxed
def _scores(
    q: np.ndarray, keys: np.ndarray, start: int, stop: int, scale: np.float32, out: np.ndarray
) -> None:
    """out[start:stop] = scale * q . keys[:, start:stop]; eight dimensions a pass."""
    row = out[start:stop]
    row[:] = np.float32(0.0)
    for i in range(0, q.size, 8):
        a, b, c, d = q[i] * scale, q[i + 1] * scale, q[i + 2] * scale, q[i + 3] * scale
        e, f, g, h = q[i + 4] * scale, q[i + 5] * scale, q[i + 6] * scale, q[i + 7] * scale
        ka, kb, kc, kd = (
            keys[i, start:stop],
            keys[i + 1, start:stop],
            keys[i + 2, start:stop],
            keys[i + 3, start:stop],
        )
        ke, kf, kg, kh = (
            keys[i + 4, start:stop],
            keys[i + 5, start:stop],
            keys[i + 6, start:stop],
            keys[i + 7, start:stop],
        )
        for t in range(row.size):
            low = a * ka[t] + b * kb[t] + c * kc[t] + d * kd[t]
            row[t] += low + (e * ke[t] + f * kf[t] + g * kg[t] + h * kh[t])


@njit_relaxed
def _softmax(row: np.ndarray) -> None:
    top = np.float32(-np.inf)
    for t in range(row.size):
        top = max(top, row[t])
    total = np.float32(0.0)
    for t in range(row.size):
        row[t] = exp32(row[t] - top)
    for t in range(row.size):
        total += row[t]
    inverse = np.float32(1.0) / total
    for t in range(row.size):
        row[t] *= inverse


@njit_relaxed
def _add_weighted(weights: np.ndarray, values: np.ndarray, start: int, stop: int, out: np.ndarray) -> None:
    """out += sum of weights[t] * values[t] over start..stop; eight positions a pass."""
    whole = stop - (stop - start) % 8
    for t in range(start, whole, 8):
        a, b, c, d = weights[t], weights[t + 1], weights[t + 2], weights[t + 3]
        e, f, g, h = weights[t + 4], weights[t + 5], weights[t + 6], weights[t + 7]
        va, vb, vc, vd = values[t], values[t + 1], values[t + 2], values[t + 3]
        ve, vf, vg, vh = values[t + 4], values[t + 5], values[t + 6], values[t + 7]
        for i in range(out.size):
            low = a * va[i] + b * vb[i] + c * vc[i] + d * vd[i]
            out[i] += low + (e * ve[i] + f * vf[i] + g * vg[i] + h * vh[i])
    for t in range(whole, stop):
        weight, value = weights[t], values[t]
        for i in range(out.size):
            out[i] += weight * value[i]
