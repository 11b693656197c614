"""INT8-X products on the GPU beside cuBLAS in bf16: `python docs/benchmarks/int8x_gpu_kernels.py FOLDER`.

Writes FOLDER/int8x_gpu_kernels.json and .md. `--warm I/N` only compiles every Nth kernel from the Ith on:
kernels compile for seconds each, and N processes started together fill triton's cache for the run that
measures.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from kernels.gpu.packing import pack_planes
from kernels.gpu.prepare import prepare
from kernels.gpu.product import ProductConfig, product
from runtime.bench import gpu_products as bench

C = ProductConfig


@dataclass(frozen=True, slots=True)
class Sweep:
    """Products of one shape: every packing with every launch configuration."""

    weights: bench.Weights
    shape: bench.Shape
    packings: list[tuple[float, int]]
    configs: list[ProductConfig | None] = field(default_factory=lambda: [None])
    batch: int = 1


COSTS = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
LARGE = (28672, 4096)
SMALL = [(2560, 1536), (1536, 2048), (9216, 1536), (1536, 4608), (6144, 4096), (4096, 4096), (4096, 14336)]


def sweeps() -> Iterator[Sweep]:
    """Everything measured."""
    large = [C(1), C(2), C(4)]
    yield Sweep(bench.MIXED, LARGE, [(c, 4) for c in COSTS], large)
    for weights in (bench.COARSE, bench.MEDIUM):
        yield Sweep(weights, LARGE, [(c, 4) for c in COSTS], large)
    for shape in SMALL:
        yield Sweep(bench.MIXED, shape, [(1, 2), (4, 2), (8, 2)], [C(4), C(8)])
    yield Sweep(bench.MIXED, (1536, 4608), [(8, 1)], [C(8), C(16)])
    for batch in (2, 4, 8):
        yield Sweep(bench.MIXED, LARGE, [(4, 4)], [C(1)], batch)
        yield Sweep(bench.MIXED, (4096, 4096), [(4, 2)], [C(4)], batch)


def warm(part: int, parts: int) -> None:
    """Compile the kernels of this part, on a few rows of weights in every form."""
    wanted = sorted(
        {(s.shape[1], s.batch, p[1], c) for s in sweeps() for p in s.packings for c in s.configs}, key=str
    )
    for columns, batch, unroll, config in wanted[part::parts]:
        weights = bench.Weights("all forms", 8.0, 1.0).draw((256, columns), "cuda")
        for cost in (0.0, 4.0, 16.0):
            planes = pack_planes(weights, torch.ones(256, device="cuda"), escape_cost=cost, unroll=unroll)
            product(planes, prepare(torch.randn(batch, columns, device="cuda")), config=config)
    torch.cuda.synchronize()


def measure(folder: Path) -> None:
    """Run every sweep and write the tables."""
    folder.mkdir(parents=True, exist_ok=True)
    products: list[bench.Measurement] = []
    baselines: dict[tuple[bench.Shape, int], float] = {}
    bench.bf16_microseconds(LARGE)
    for sweep in sweeps():
        key = (sweep.shape, sweep.batch)
        baselines.setdefault(key, bench.bf16_microseconds(*key))
        options = {"batch": sweep.batch, "baseline": baselines[key]}
        found = list(
            bench.measure_products(sweep.weights, sweep.shape, sweep.packings, sweep.configs, **options)
        )
        print(bench.markdown(found), flush=True)
        products += found
    prologues = [(4096, "none"), (4096, "norm"), (14336, "gate"), (1536, "norm")]
    prepared = [bench.measure_prepare(*p) for p in prologues]
    decoded = [bench.measure_decode(bench.MIXED, LARGE, cost) for cost in (0.0, 8.0)]
    result = {"products": bench.as_json(products), "prepare": prepared, "decode": decoded}
    (folder / "int8x_gpu_kernels.json").write_text(json.dumps(result, indent=1))
    (folder / "int8x_gpu_kernels.md").write_text(bench.markdown(products) + "\n")
    print(json.dumps(prepared), json.dumps(decoded), sep="\n")


def main() -> None:
    """Parse the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--warm", metavar="I/N")
    arguments = parser.parse_args()
    if arguments.warm:
        warm(*(int(n) for n in arguments.warm.split("/")))
    else:
        measure(arguments.folder)


if __name__ == "__main__":
    main()
