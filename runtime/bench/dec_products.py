"""Base products of every kind of weights beside bf16 by cuBLAS, and the compensation kernel alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from kernels.gpu.dec.fetch import FetchConfig, ResidualRows
from kernels.gpu.prepare import new_prepared, prepare
from runtime.bench.gpu_timing import copies_needed
from runtime.bench.shapes import LLAMA
from runtime.layers.base import LinearKind
from runtime.layers.device_products import PackedWeights, multiply_prepared
from runtime.tuner.link import fetch_microseconds
from runtime.tuner.random_model import cloned, random_residual
from runtime.tuner.random_weights import makers
from runtime.tuner.replays import Replay

Row = dict[str, Any]
# The largest first: the others must be fast, but it decides.
KINDS: tuple[LinearKind, ...] = ("gate_up", "down", "qkv", "o")
BASES = ("awq4", "awq3", "squeezellm4", "squeezellm3", "int8x4.2", "int8x3.4")
NAMES = {
    "awq4": "4-bit groups",
    "awq3": "3-bit groups",
    "squeezellm4": "4-bit tables",
    "squeezellm3": "3-bit tables",
    "int8x4.2": "INT8-X, 4.2 bit",
    "int8x3.4": "INT8-X, 3.4 bit",
}
K_CHUNKS = (8, 16, 32, 64, 128, 256)
_FETCHES = {"gate_up": FetchConfig(16, 2), "down": FetchConfig(16, 8)}


def product_rows(
    device: torch.device, kinds: Sequence[LinearKind] = KINDS, bases: Sequence[str] = BASES
) -> Iterator[Row]:
    """A row for every matrix and format; `share`: of the bandwidth that bf16 reaches, `x bf16`: in time."""
    for kind in kinds:
        n_out, n_in = LLAMA.linears[kind]
        x = torch.randn(n_in, device=device)
        bf16_us = _bf16_microseconds(n_out, x)
        rate = 2 * n_out * n_in / bf16_us / 1e6
        yield _row(kind, "bf16", 16.0, bf16_us, rate, rate, bf16_us)
        for base in bases:
            weights = makers(base, device)[0](n_out, n_in)
            us = product_microseconds(weights, x)
            bits = weights.bits_per_weight
            yield _row(kind, NAMES[base], bits, us, weights.nbytes / us / 1e6, rate, bf16_us)
            del weights
        torch.cuda.empty_cache()


def product_microseconds(weights: PackedWeights, x: Tensor) -> float:
    """Time of one product, its input prepared, over rotated copies."""
    prepared = prepare(x, out=new_prepared(1, weights.columns, x.device))
    out = torch.empty(1, weights.rows, device=x.device)
    copies = [weights, *(cloned(weights) for _ in range(1, copies_needed(weights.nbytes)))]
    calls = [partial(multiply_prepared, copy, prepared, out) for copy in copies]
    return Replay(calls).microseconds(21) / len(calls)


def compensation_rows(device: torch.device, link_gb_s: float) -> Iterator[Row]:
    """The fetch by a kernel of its own, at several k_chunk: bytes of rows over its time."""
    for kind, config in _FETCHES.items():
        n_out, n_in = LLAMA.linears[kind]  # type: ignore[index]
        residual = random_residual(n_out, n_in, device, pinned=True)
        for k_chunk in K_CHUNKS:
            yield _compensation(kind, residual, k_chunk, config, link_gb_s)


def _compensation(
    kind: str, residual: ResidualRows, k_chunk: int, config: FetchConfig, link_gb_s: float
) -> Row:
    us = fetch_microseconds(residual, k_chunk, config)
    fetched = k_chunk * residual.columns / 1024 * residual.row_bytes
    gb_s = fetched / us / 1e3
    return {
        "linear": kind,
        "k_chunk": k_chunk,
        "MB": fetched / 1e6,
        "us": us,
        "GB/s": gb_s,
        "of the link": gb_s / link_gb_s,
    }


def _bf16_microseconds(n_out: int, x: Tensor) -> float:
    count = copies_needed(2 * n_out * x.numel())
    dense = [torch.randn(n_out, x.numel(), device=x.device).bfloat16() for _ in range(count)]
    graph = Replay([partial(functional.linear, x.bfloat16(), weight) for weight in dense])
    # A GPU that was idle reads a tenth too slow at first, which would flatter every ratio.
    return min(graph.microseconds(21) for _ in range(2)) / len(dense)


def _row(kind: str, name: str, bits: float, us: float, rate: float, bf16_rate: float, bf16_us: float) -> Row:
    n_out, n_in = LLAMA.linears[kind]  # type: ignore[index]
    return {
        "linear": kind,
        "matrix": f"{n_out}x{n_in}",
        "weights": name,
        "bits": bits,
        "us": us,
        "TB/s": rate,
        "share": rate / bf16_rate,
        "x bf16": bf16_us / us,
    }
