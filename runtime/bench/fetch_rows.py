"""Products with the fetch in their first programs, against the same products without."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch

from kernels.dec import pack_nibbles
from kernels.gpu.dec.correction import add_correction
from kernels.gpu.dec.fetch import Fetch, FetchConfig, ResidualRows, new_fetch
from kernels.gpu.dec.reference import correction
from kernels.gpu.dec.selection import new_selection
from kernels.gpu.prepare import Prepared, prepare
from runtime.bench.gpu_timing import copies_needed
from runtime.layers.device_products import PackedWeights, extras_of, multiply_prepared, product_warps
from runtime.tuner.random_model import cloned
from runtime.tuner.replays import Replay

Row = dict[str, Any]
Shape = tuple[int, int]
DEVICE = "cuda"
K_CHUNKS = (0, 4, 8, 16, 24, 32)
# Rows in flight and splits, for programs of one or two warps and for programs of more.
_LARGE = ((8, 1), (16, 1), (8, 2), (16, 2))
_SMALL = ((8, 2), (16, 2), (16, 4), (8, 8))
_REPLAYS = 21


def fetch_rows(name: str, make: Callable[[Shape], PackedWeights], shapes: Sequence[Shape]) -> Iterator[Row]:
    """For every matrix and way of fetching: the product's time and, by k_chunk, the ratio to it."""
    for shape in shapes:
        weights = make(shape)
        residual = _residual(shape)
        for config in configs(weights):
            yield {"weights": name, "matrix": f"{shape[0]}x{shape[1]}"} | _measured(weights, residual, config)


def configs(weights: PackedWeights) -> tuple[FetchConfig, ...]:
    """From few loads in flight to many; the list is read ahead, which takes fewer registers at the peak."""
    chosen = _LARGE if product_warps(weights) <= 2 else _SMALL
    return tuple(FetchConfig(rows, splits, True) for rows, splits in chosen)


def fetch_tasks(make: Callable[[Shape], PackedWeights], shape: Shape) -> Iterator[Callable[[], object]]:
    """Every kernel that `fetch_rows` needs, to compile it."""
    words = torch.zeros(shape[1], shape[0] // 8, dtype=torch.int32, device=DEVICE)
    residual = ResidualRows(words, torch.ones(shape[0], device=DEVICE))
    for number in range(len(_LARGE)):
        yield partial(_run, make, shape, residual, number)


def _run(make: Callable[[Shape], PackedWeights], shape: Shape, residual: ResidualRows, number: int) -> None:
    weights = make(shape)
    for config in configs(weights)[number : number + 1]:
        prepared, fetch = _ready(weights, residual, config)
        multiply_prepared(weights, prepared, torch.empty(1, shape[0], device=DEVICE), fetch)


def _measured(weights: PackedWeights, residual: ResidualRows, config: FetchConfig) -> Row:
    prepared, fetch = _ready(weights, residual, config)
    out = torch.empty(1, weights.rows, device=weights.device)
    copies = [weights, *(cloned(weights) for _ in range(1, copies_needed(weights.nbytes)))]
    base = Replay([partial(multiply_prepared, copy, prepared, out) for copy in copies])
    fetching = Replay([partial(multiply_prepared, copy, prepared, out, fetch) for copy in copies])
    row: Row = {"fetch": f"{config.rows} rows, {config.splits} splits, {product_warps(weights)} warps"}
    x = torch.randn(weights.columns, device=weights.device)
    for k_chunk in K_CHUNKS:
        fetch.selection.set_k_chunk(k_chunk)
        prepare(x, selection=fetch.selection, out=prepared, extras=prepared.extras)
        added, base_us = fetching.added_to(base, _REPLAYS)
        row.setdefault("base us", base_us / len(copies))
        row[f"k {k_chunk}"] = 1 + added / base_us
    fetched = K_CHUNKS[-1] * weights.columns / 1024 * residual.row_bytes
    row["GB/s at the last"] = fetched * len(copies) / (base_us + added) / 1e3
    return row | {"error": _error(weights, prepared, fetch)}


def _ready(weights: PackedWeights, residual: ResidualRows, config: FetchConfig) -> tuple[Prepared, Fetch]:
    selection = new_selection(weights.columns, weights.device, K_CHUNKS[-1])
    x = torch.randn(weights.columns, device=weights.device)
    prepared = prepare(x, selection=selection, extras=extras_of(weights))
    return prepared, new_fetch(residual, selection, config)


def _error(weights: PackedWeights, prepared: Prepared, fetch: Fetch) -> float:
    """Of the added correction, to float64 over the listed channels; the base must be the same bits."""
    out = torch.empty(1, weights.rows, device=weights.device)
    base = multiply_prepared(weights, prepared, out).clone()
    if not torch.equal(multiply_prepared(weights, prepared, out, fetch), base):
        return float("nan")
    added = add_correction(torch.zeros_like(out), fetch)[0].cpu().double()
    listed = fetch.selection.listed(K_CHUNKS[-1])
    channels = fetch.selection.channels[:listed].cpu().long()
    values = fetch.selection.values[:listed].cpu()
    exact = correction(fetch.residual.words, fetch.residual.scale.cpu(), channels, values)
    return float((added - exact).norm() / exact.norm())


def _residual(shape: Shape) -> ResidualRows:
    n_out, n_in = shape
    codes = torch.randint(-7, 8, (n_in, n_out), dtype=torch.int8)
    words = pack_nibbles(codes)
    return ResidualRows(words.pin_memory() if DEVICE == "cuda" else words, torch.rand(n_out, device=DEVICE))
