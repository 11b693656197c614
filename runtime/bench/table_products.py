"""Look-up tables on a GPU, INT8-X and tables with the fetch in them, and page-locked memory, in one run:
`python -m runtime.bench.table_products --out FOLDER`.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from kernels.dec import TableCodes
from kernels.dec.table_steps import in_whole_steps
from kernels.gpu.lowbit.table_product import table_product
from kernels.gpu.lowbit.table_reference import table_weights
from kernels.gpu.lowbit.tables import DeviceTables, pack_tables
from kernels.gpu.planes import DevicePlanes
from kernels.gpu.prepare import new_prepared, prepare
from kernels.gpu.product import ProductConfig
from runtime.bench import fetch_rows, host_rows
from runtime.bench.gpu_report import GpuReport
from runtime.bench.gpu_timing import copies_needed
from runtime.bench.run_gpu import about
from runtime.bench.warming import run_part, warm
from runtime.layers.device_products import multiply_prepared
from runtime.tuner.random_weights import random_planes
from runtime.tuner.replays import Replay, warm_up

Row = dict[str, Any]
Shape = tuple[int, int]
Weights = DeviceTables | DevicePlanes
DEVICE = "cuda"
MODULE, NAME, TITLE = "runtime.bench.table_products", "table-products", "Look-up tables and fetching products"
LARGE: Shape = (28672, 4096)
SHAPES: tuple[Shape, ...] = (LARGE, (4096, 14336), (6144, 4096), (4096, 4096))
FORMS: dict[str, Callable[[Shape], Weights]] = {
    "tables, 4 bit": lambda shape: random_table_matrix(4, shape),
    "tables, 3 bit": lambda shape: random_table_matrix(3, shape),
    "INT8-X, 3.4 bit": lambda shape: random_planes(3.4, torch.device(DEVICE), *shape),
}
LARGE_LAUNCHES = (ProductConfig(1, 64), ProductConfig(2, 64), ProductConfig(1), ProductConfig(4, 80))
SMALL_LAUNCHES = (ProductConfig(4, 80), ProductConfig(4, 64), ProductConfig(8, 80), ProductConfig(2, 80))
LARGE_PLANE_LAUNCHES = (ProductConfig(1, 64), ProductConfig(2), ProductConfig(4, 64))
SMALL_PLANE_LAUNCHES = (ProductConfig(4, 80), ProductConfig(8), ProductConfig(8, 64))
BATCHES = (1, 2, 4, 8)
BATCH_LAUNCHES = (ProductConfig(1), ProductConfig(2), ProductConfig(4))
SECONDS, WARM_SECONDS, MOST_PROCESSES, _WARM_ROWS, _REPLAYS = 240.0, 90.0, 14, 256, 21
NOTES = {
    "launches": "us: median of replays of a CUDA graph over copies that no cache holds, input prepared."
    " share: TB/s over those of bf16 by cuBLAS in the same run. error: to float64, relative.",
    "batches": "us by the vectors multiplied at once.",
    "fetch": "Product with the fetch in its first programs over the product without; no selection, no sum."
    " error: of the correction to float64, relative.",
    "memory": "GB/s of the compensation kernel alone, its start taken off, from memory locked in three ways.",
}


def main() -> None:
    """Measure all sections, or compile one part of the kernels."""
    parser = argparse.ArgumentParser(description=TITLE)
    parser.add_argument("--out", type=Path, default=Path(NAME))
    parser.add_argument("--only", action="append", default=[], help="sections that begin so, repeatable")
    parser.add_argument("--warm", metavar="I/N", help="only compile every Nth kernel from the Ith on")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        parser.error("there is no GPU that torch can use")
    only = tuple(arguments.only)
    if arguments.warm:
        part, parts = (int(number) for number in arguments.warm.split("/"))
        run_part(list(_tasks(only)), part, parts)
        return
    report = GpuReport(arguments.out, about(), SECONDS, NOTES, only, name=NAME, title=TITLE)
    processes = max(1, min(MOST_PROCESSES, os.cpu_count() or 1))
    for row in warm(MODULE, processes, WARM_SECONDS, [f"--only={name}" for name in only]):
        print(row)
    warm_up()
    for shape in SHAPES:
        report.run(f"launches {shape[0]}x{shape[1]}", partial(launch_rows, shape))
    report.run("batches", batch_rows)
    for name, form in FORMS.items():
        report.run(f"fetch {name}", partial(fetch_rows.fetch_rows, name, form, SHAPES))
    report.run("memory", host_rows.memory_rows)


def launches_of(name: str, shape: Shape) -> tuple[ProductConfig, ...]:
    """Launches worth measuring for a matrix."""
    large = shape[0] >= LARGE[0]
    if name.startswith("INT8-X"):
        return LARGE_PLANE_LAUNCHES if large else SMALL_PLANE_LAUNCHES
    return LARGE_LAUNCHES if large else SMALL_LAUNCHES


def launch_rows(shape: Shape) -> Iterator[Row]:
    """bf16, then every form in every launch."""
    x = torch.randn(shape[1], device=DEVICE)
    bf16_us = bf16_microseconds(shape, x)
    rate = 2 * shape[0] * shape[1] / bf16_us / 1e6
    yield {"weights": "bf16", "bits": 16.0, "us": bf16_us, "TB/s": rate, "share": 1.0, "x bf16": 1.0}
    for name, form in FORMS.items():
        weights = form(shape)
        for config in launches_of(name, shape):
            us = product_microseconds(weights, x, config)
            tb_s = weights.nbytes / us / 1e6
            row = {"weights": name, "bits": weights.bits_per_weight, "us": us, "TB/s": tb_s}
            row |= {"share": tb_s / rate, "x bf16": bf16_us / us, "launch": str(config)}
            yield row | {"error": _error(weights, x, config)}


def batch_rows() -> Iterator[Row]:
    """The large matrix with several vectors at once."""
    for bits in (4, 3):
        weights = random_table_matrix(bits, LARGE)
        for config in BATCH_LAUNCHES:
            row: Row = {"weights": f"tables, {bits} bit", "launch": str(config)}
            for batch in BATCHES:
                x = torch.randn(batch, LARGE[1], device=DEVICE)
                row[f"us {batch}"] = product_microseconds(weights, x, config)
            yield row | {"error": _error(weights, x, config)}


def bf16_microseconds(shape: Shape, x: Tensor) -> float:
    """Time of cuBLAS."""
    count = copies_needed(2 * shape[0] * shape[1])
    dense = [torch.randn(shape, device=DEVICE).bfloat16() for _ in range(count)]
    graph = Replay([partial(functional.linear, x.bfloat16(), weight) for weight in dense])
    return min(graph.microseconds(_REPLAYS) for _ in range(2)) / count


def product_microseconds(weights: Weights, x: Tensor, config: ProductConfig) -> float:
    """Time of one product, its input prepared, over rotated copies."""
    vectors = x.reshape(-1, weights.columns)
    prepared = prepare(x, out=new_prepared(len(vectors), weights.columns, x.device))
    out = torch.empty(len(vectors), weights.rows, device=x.device)
    copies = [weights, *(weights.clone() for _ in range(1, copies_needed(weights.nbytes)))]
    calls = [partial(multiply_prepared, copy, prepared, out, None, config) for copy in copies]
    return Replay(calls).microseconds(_REPLAYS) / len(calls)


def random_table_matrix(bits: int, shape: Shape) -> DeviceTables:
    """Random codes under random tables, on the GPU."""
    codes = torch.randint(0, 2**bits, shape, dtype=torch.uint8, device=DEVICE)
    table = torch.randn(shape[0], 2**bits, device=DEVICE).bfloat16().float()
    return pack_tables(TableCodes(bits, codes, in_whole_steps(table)))


def _error(weights: Weights, x: Tensor, config: ProductConfig) -> float | None:
    """||y - W x|| / ||W x|| in float64, of tables: planes have a benchmark of their own."""
    if isinstance(weights, DevicePlanes):
        return None
    y = table_product(weights, prepare(x), config=config).double()
    exact = x.double().reshape(-1, weights.columns) @ table_weights(weights).T
    return float((y - exact).norm() / exact.norm())


def _tasks(only: tuple[str, ...]) -> Iterator[Callable[[], object]]:
    """Every kernel of the sections once; matrices of the same columns share theirs, unless launched apart."""
    for name, form in FORMS.items():
        made = cache(form)
        for shape in SHAPES:
            if _wanted("launches", only):
                for config in launches_of(name, shape):
                    yield partial(_run, made, shape, config)
            if _wanted(f"fetch {name}", only):
                yield from fetch_rows.fetch_tasks(made, shape)
    for bits, batch, config in product((4, 3), BATCHES, BATCH_LAUNCHES):
        if _wanted("batches", only):
            yield partial(_run, partial(random_table_matrix, bits), (_WARM_ROWS, LARGE[1]), config, batch)


def _run(make: Callable[[Shape], Weights], shape: Shape, config: ProductConfig, batch: int = 1) -> Tensor:
    weights = make(shape)
    prepared = prepare(torch.randn(batch, shape[1], device=DEVICE))
    return multiply_prepared(weights, prepared, torch.empty(batch, shape[0], device=DEVICE), None, config)


def _wanted(section: str, only: tuple[str, ...]) -> bool:
    return not only or section.startswith(only)


if __name__ == "__main__":
    main()
