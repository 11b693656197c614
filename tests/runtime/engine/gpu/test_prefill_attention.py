"""Attention of a chunk on the cache, position by position in float64."""

import pytest
import torch
from torch.nn.attention import sdpa_kernel

from kernels.gpu.attention.cache import new_device_cache
from runtime.engine.gpu.prefill_attention import BACKENDS, attend

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
HEADS, KV_HEADS, DIM, CONTEXT = 6, 2, 16, 48


def exact(q, keys, values, start, window, scale):
    """float64 [tokens, heads * dim]; keys and values [kv_heads, end, dim]."""
    out = torch.zeros(q.shape[1], HEADS, DIM, dtype=torch.float64)
    for head in range(HEADS):
        shared = head // (HEADS // KV_HEADS)
        for token in range(q.shape[1]):
            seen = slice(0 if window is None else max(0, start + token + 1 - window), start + token + 1)
            scores = keys[shared, seen].double() @ q[head, token].double() * scale
            out[token, head] = scores.softmax(0) @ values[shared, seen].double()
    return out.flatten(1)


@pytest.mark.parametrize("window", [None, 4, 9, 100])
@pytest.mark.parametrize(("start", "tokens"), [(0, 1), (0, 11), (8, 11), (3, 4), (20, 1)])
@pytest.mark.parametrize("bits", [16, 8])
def test_every_query_sees_what_it_may(start, tokens, window, bits):
    torch.manual_seed(start + tokens)
    layer = new_device_cache(1, KV_HEADS, CONTEXT, DIM, DEVICE, bits).layer(0)
    for part in (layer.keys, layer.values):
        part.fill_(1 if bits == 8 else torch.nan)
    end = start + tokens
    layer.write(0, *(torch.randn(KV_HEADS, end, DIM, device=DEVICE) for _ in range(2)))
    q = torch.randn(HEADS, tokens, DIM).bfloat16()
    with sdpa_kernel(BACKENDS):
        found = attend(q.to(DEVICE), layer, start, window, 0.3).double().cpu()
    keys, values = (part.cpu() for part in layer.visible(end))
    assert (found - exact(q, keys, values, start, window, 0.3)).abs().max() < 2e-2
