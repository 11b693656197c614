"""A token before a filled cache, and its attention by brute force in float64."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from kernels.gpu.attention.cache import LayerCache, new_device_cache
from kernels.gpu.attention.decode import HeadNorms, decode_attention
from kernels.gpu.attention.scratch import AttentionScratch, new_attention_scratch
from kernels.gpu.dec.fetch import Fetch, FetchConfig, ResidualRows, new_fetch
from kernels.gpu.dec.selection import new_selection

CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"
# Tensor cores round queries and weights to bf16; without them only sums are rounded.
TOLERANCE = 1e-2 if CUDA else 5e-6


@dataclass(frozen=True)
class Shape:
    """Sizes of a layer and how programs share it; small shares, so that short contexts are split."""

    kv_heads: int = 2
    group: int = 4
    head_dim: int = 32
    rotary_dim: int = 32
    context: int = 80
    bits: int = 16
    splits: int = 4
    share: int = 8

    @property
    def q_size(self) -> int:
        return self.kv_heads * self.group * self.head_dim

    @property
    def sizes(self) -> list[int]:
        kv_size = self.kv_heads * self.head_dim
        return [self.q_size, kv_size, kv_size]


@dataclass(frozen=True)
class Token:
    """Everything that `decode_attention` takes for the token at `here`, random."""

    shape: Shape
    here: int
    qkv: torch.Tensor
    cache: LayerCache
    rope: tuple[torch.Tensor, torch.Tensor]
    scratch: AttentionScratch
    options: dict = field(default_factory=dict)

    def attended(self) -> torch.Tensor:
        out = torch.full((1, self.shape.q_size), torch.nan, device=DEVICE)
        self.call(torch.tensor([self.here], dtype=torch.int32, device=DEVICE), out)
        return out.cpu()[0]

    def call(self, position: torch.Tensor, out: torch.Tensor) -> None:
        options = {"scale": self.shape.head_dim**-0.5, **self.options}
        decode_attention(self.qkv, self.cache, position, self.rope, out, self.scratch, **options)


def token(shape: Shape, here: int, seed: int = 0, **options) -> Token:
    """A token whose cache holds `here` positions before it, and not-a-numbers from there on."""
    generator = torch.Generator().manual_seed(1000 * here + seed)
    cache = poisoned_cache(shape)
    rows = torch.randn(2, shape.kv_heads, here, shape.head_dim, generator=generator).to(DEVICE)
    cache.write(0, rows[0], rows[1])
    angles = 6.3 * torch.rand(shape.context, shape.rotary_dim // 2, generator=generator)
    scratch = new_attention_scratch(
        shape.kv_heads,
        shape.group,
        shape.head_dim,
        DEVICE,
        splits=shape.splits,
        share=shape.share,
    )
    scratch.partial.fill_(torch.nan)
    scratch.weights.fill_(torch.nan)
    qkv = torch.randn(1, sum(shape.sizes), generator=generator).to(DEVICE)
    rope = angles.cos().to(DEVICE), angles.sin().to(DEVICE)
    return Token(shape, here, qkv, cache, rope, scratch, options)


def poisoned_cache(shape: Shape) -> LayerCache:
    """A cache where nothing written is a number, or in int8 has no scale that is one."""
    cache = new_device_cache(2, shape.kv_heads, shape.context, shape.head_dim, DEVICE, shape.bits)
    for part in (cache.keys, cache.values, cache.key_scales, cache.value_scales):
        if part is not None:
            part.fill_(torch.nan if part.is_floating_point() else 99)
    return cache.layer(1)


def norms(head_dim: int, eps: float = 1e-2) -> HeadNorms:
    """Random norms of q and k; an epsilon that shows."""
    weights = torch.rand(2, head_dim, generator=torch.Generator().manual_seed(7)) + 0.5
    return HeadNorms(weights[0].to(DEVICE), weights[1].to(DEVICE), eps)


def fetched(outputs: int, k_chunk: int, splits: int = 3) -> Fetch:
    """A correction as if rows had been read; not-a-numbers where k_chunk in effect is 0."""
    generator = torch.Generator().manual_seed(11)
    words = torch.zeros(16, -(-outputs // 8), dtype=torch.int32)
    residual = ResidualRows(words, (torch.rand(outputs, generator=generator) + 0.1).to(DEVICE))
    fetch = new_fetch(residual, new_selection(16, DEVICE), FetchConfig(4, splits))
    fetch.selection.control[1] = k_chunk
    fetch.selection.common.fill_(0.7)
    fetch.partial.copy_(torch.randn(fetch.partial.shape, generator=generator))
    if not k_chunk:
        fetch.partial.fill_(torch.nan)
    return fetch


def new_rows(case: Token) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """float64 q [kv_heads, group, head_dim], k and v [kv_heads, head_dim] of the token, after RoPE."""
    shape, options = case.shape, case.options
    y = case.qkv.cpu()[0].double()
    if (bias := options.get("bias")) is not None:
        y = y + bias.cpu().double()
    if (fetch := options.get("correction")) is not None and int(fetch.selection.control[1]):
        total = fetch.partial.cpu().double().sum(0)[: y.numel()]
        y = y + total * fetch.residual.scale.cpu().double() * float(fetch.selection.common)
    q, k, v = (part.unflatten(0, (-1, shape.head_dim)) for part in y.split(shape.sizes))
    if (normed := options.get("norms")) is not None:
        q, k = _normed(q, normed.q, normed.eps), _normed(k, normed.k, normed.eps)
    q = _rotated(q, case).unflatten(0, (shape.kv_heads, shape.group))
    return q, _rotated(k, case), v


def expected(case: Token) -> torch.Tensor:
    """float64 [q_size]: plain softmax over what the cache holds after the step, the new row included."""
    q, _, _ = new_rows(case)
    window = case.options.get("window") or case.here + 1
    first = max(0, case.here - window + 1)
    keys = stored(case.cache.keys, case.cache.key_scales)[:, first : case.here + 1]
    values = stored(case.cache.values, case.cache.value_scales)[:, first : case.here + 1]
    scores = q @ keys.transpose(1, 2) * case.options.get("scale", case.shape.head_dim**-0.5)
    return (scores.softmax(-1) @ values).flatten()


def stored(rows: torch.Tensor, scales: torch.Tensor | None) -> torch.Tensor:
    """float64 numbers that a cache holds."""
    exact = rows.cpu().double()
    return exact if scales is None else exact * scales.cpu().double()[..., None]


def _normed(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    return x / (x.square().mean(-1, keepdim=True) + eps).sqrt() * weight.cpu().double()


def _rotated(x: torch.Tensor, case: Token) -> torch.Tensor:
    """Pairs (d, d + half) as complex numbers, turned by their angle."""
    half = case.shape.rotary_dim // 2
    turn = torch.complex(*(table[case.here].cpu().double() for table in case.rope))
    turned = torch.complex(x[..., :half], x[..., half : 2 * half]) * turn
    return torch.cat([turned.real, turned.imag, x[..., 2 * half :]], -1)
