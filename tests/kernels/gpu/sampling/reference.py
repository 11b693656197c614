"""The choice in float64 on a CPU: Philox written out, and the largest weight over noise."""

from __future__ import annotations

import numpy as np
import torch

from runtime.generation.sampler import Sampler, candidates

_LOW = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)


def philox(seed: int, ids: np.ndarray, position: int) -> np.ndarray:
    """First word of Philox4x32-10 with counter (id, position, 0, 0), as in Salmon et al., 2011."""
    zeros = np.zeros(len(ids), np.uint64)
    c0, c1, c2, c3 = ids.astype(np.uint64), zeros + np.uint64(position), zeros, zeros
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32
    for _ in range(10):
        product0, product1 = c0 * np.uint64(0xD2511F53), c2 * np.uint64(0xCD9E8D57)
        c0, c1, c2, c3 = (
            (product1 >> _SHIFT) ^ c1 ^ np.uint64(k0),
            product1 & _LOW,
            (product0 >> _SHIFT) ^ c3 ^ np.uint64(k1),
            product0 & _LOW,
        )
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c0


def noise(seed: int, ids: np.ndarray, position: int) -> np.ndarray:
    """Exponentially distributed, float64."""
    return -np.log1p(-(philox(seed, ids, position).astype(np.float64) + 0.5) / 2.0**32)


def kept(logits: torch.Tensor, settings, seen=()) -> tuple[np.ndarray, np.ndarray]:
    """Ids that may be chosen and their probabilities float64, by the CPU's own sampler."""
    ids, probabilities = candidates(Sampler(settings, seen)._penalised(logits), settings)
    ids = torch.arange(len(logits)) if ids is None else ids
    possible = probabilities > 0
    chances = probabilities[possible].double()
    return ids[possible].numpy(), (chances / chances.sum()).numpy()


def choice(logits: torch.Tensor, settings, position: int, seen=()) -> int:
    """The token that seed and position draw from what is kept."""
    if settings.temperature == 0:
        return Sampler(settings, seen).pick(logits)
    ids, chances = kept(logits, settings, seen)
    return int(ids[np.argmax(chances / noise(settings.seed, ids, position))])
