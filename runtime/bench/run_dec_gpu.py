"""Corrections on a GPU, measured in one run: `python -m runtime.bench.run_dec_gpu --out FOLDER`.

Writes FOLDER/dec-gpu.json and .md after every row, and pictures; goes on when a section fails. Needs torch,
triton, numba, msgspec and platformdirs, and matplotlib for the pictures.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch

from runtime.bench import dec_gpu_plots
from runtime.bench.dec_blocks import (
    SPEC,
    TunedBlock,
    efficiency_rows,
    fresh_tuning,
    promise_rows,
    same_bits,
    tune_block,
)
from runtime.bench.dec_linears import linear_tasks
from runtime.bench.dec_pairs import RATIOS, knee_rows, pair_rows
from runtime.bench.dec_products import compensation_rows, product_rows
from runtime.bench.gpu_report import GpuReport, Section
from runtime.bench.run_gpu import about
from runtime.bench.shapes import LLAMA
from runtime.bench.warming import Task, run_part, warm
from runtime.tuner import plot
from runtime.tuner.compiling import MOST_PROCESSES, Case, compile_all
from runtime.tuner.link import link_gb_s
from runtime.tuner.replays import warm_up

Row = dict[str, Any]
MODULE = "runtime.bench.run_dec_gpu"
NAME, TITLE = "dec-gpu", "Corrections on a GPU"
SECONDS, COMPILE_SECONDS = 500.0, 90.0
FOUR_BIT, OTHER_BASES = "awq4", ("awq3", "int8x3.4")
_PARTS = (
    "base rows x2.7 and x6.7: products with so many times the rows stand in for an RTX 4090 and an RTX 4050"
    " Laptop, whose memory is slower beside their link. efficiency: bytes fetched over what 50 GB/s could"
    " bring in the base's time."
)
_BLOCKS = (
    "x1: blocks as the engine runs them, at 512 tokens; the base is a whole token's time, per block. x2.7 and"
    " x6.7: the four linears, with the kernels that add corrections, without attention, head and sampling."
)
NOTES = {
    "tuner": "Llama-3-8B's shapes from nothing: kernels compiled, link measured, curves, search, joint"
    " check. predicted: single kinds added up; measured: all of them in one graph; measured again: after it.",
    "products": "us: median of replays of a CUDA graph over copies that no cache holds, input prepared"
    " before. share: TB/s over those of bf16 by cuBLAS in the same run.",
    "compensation": "The fetch alone, in a kernel of its own; its start counts.",
    "pairs": "base: input (norm or gate, digits) and product. "
    + _PARTS
    + " start: what correcting one channel in 1024 costs, of the base.",
    "blocks": " ".join((_BLOCKS, _PARTS))
    + " Tables and launches that the tuner finds for one slowdown when bytes count; one for all: with one"
    " choice of launches.",
    "promise": "As under tuner, with more base rows; a table's worth is its gain in perplexity.",
    "knees": "3 bits: largest k_chunk of a linear alone within a slowdown, beside the paper's knees.",
    "same bits": "Results of replays from the same start, compared bit by bit with the first.",
}


class Measurements:
    """The sections, what they share, and the pictures made of them."""

    def __init__(
        self, report: GpuReport, device: torch.device, begin: Callable[[str], object] = lambda name: None
    ) -> None:
        """`begin` hears of every section before it starts, and may raise to end the run."""
        self.report, self.device, self.link, self._begin = report, device, 0.0, begin
        self.blocks: dict[str, TunedBlock] = {}

    def all(self) -> None:
        """Every section, the most wanted ones first."""
        run = self._run
        run("tuner", self.tuner_rows)
        run("link", self.link_rows)
        run("compile", self.compile_rows)
        run("compile linears", self.compile_linear_rows)
        run("products", partial(product_rows, self.device))
        run("compensation", lambda: compensation_rows(self.device, self.link))
        for ratio in RATIOS:
            run(f"blocks {FOUR_BIT} x{ratio:g}", partial(self.block_rows, FOUR_BIT, ratio))
        run("same bits", self.same_bits_rows)
        run("pairs", lambda: pair_rows(self.device, self.link))
        for ratio in RATIOS[1:]:
            run(f"promise {FOUR_BIT} x{ratio:g}", partial(self.promise_rows, FOUR_BIT, ratio))
        for base in OTHER_BASES:
            run(f"blocks {base} x1", partial(self.block_rows, base, 1.0))
        run("knees", lambda: knee_rows(self.device, self.link))
        self.draw()

    def _run(self, name: str, section: Section) -> None:
        self._begin(name)
        self.report.run(name, section)

    def tuner_rows(self) -> Iterator[Row]:
        """The tuner's promise and wall time, nothing compiled before."""
        block = fresh_tuning(FOUR_BIT, self.device)
        yield from promise_rows(block)
        self._picture(block)
        self.link = block.measurer.link_gb_s

    def link_rows(self) -> Iterator[Row]:
        """What kernels read from page-locked memory."""
        warm_up()
        self.link = link_gb_s(self.device)
        yield {"GB/s": self.link}

    def compile_rows(self) -> Iterator[Row]:
        """Every kernel of the blocks of other bases, in parallel."""
        bases = (*OTHER_BASES, "squeezellm4", "squeezellm3")
        cases = [Case(base, SPEC, self.link) for base in bases]
        yield {"cases": len(cases), "seconds": compile_all(cases, self.device, COMPILE_SECONDS)}

    def compile_linear_rows(self) -> Iterator[Row]:
        """Every kernel of linears that stand for other devices."""
        processes = max(1, min(MOST_PROCESSES, os.cpu_count() or 1))
        yield from warm(MODULE, processes, COMPILE_SECONDS, ("--link", str(self.link)))

    def block_rows(self, base: str, ratio: float) -> Iterator[Row]:
        """Efficiency of a block tuned for bytes."""
        block = self.blocks[f"{base} x{ratio:g}"] = tune_block(
            base, ratio, self.device, self.link, by_bytes=True
        )
        yield from efficiency_rows(block)
        self._picture(block)

    def promise_rows(self, base: str, ratio: float) -> Iterator[Row]:
        """A block tuned for quality."""
        yield from promise_rows(tune_block(base, ratio, self.device, self.link))

    def same_bits_rows(self) -> Iterator[Row]:
        """Determinism of every block there is; they end their use here, for they fill the device."""
        for block in list(self.blocks.values()):
            yield same_bits(block)
        self.blocks.clear()
        torch.cuda.empty_cache()

    def draw(self) -> None:
        """Efficiency against slowdown, of all blocks."""
        rows = [row for name, rows in self.report.rows.items() if name.startswith("blocks") for row in rows]
        if rows:
            dec_gpu_plots.draw_efficiency(rows, self.report.folder / f"{NAME}-efficiency.svg")

    def _picture(self, block: TunedBlock) -> None:
        title = (
            f"Llama-3-8B, {block.base}, base rows x{block.ratio:g}, {torch.cuda.get_device_name(self.device)}"
        )
        plot.draw(self.report.folder / f"{NAME}-{block.base}-x{block.ratio:g}.svg", title, block.tuned)


def measure(
    folder: Path,
    seconds: float = SECONDS,
    only: tuple[str, ...] = (),
    begin: Callable[[str], object] = lambda name: None,
) -> GpuReport:
    """All sections into a folder; the report. `begin` hears of every section."""
    facts = {**about(), "measured by": f"python -m {MODULE}"}
    report = GpuReport(folder, facts, seconds, NOTES, only, NAME, TITLE)
    with torch.inference_mode():
        Measurements(report, torch.device("cuda", torch.cuda.current_device()), begin).all()
    return report


def kernel_tasks(device: torch.device, link_gb_s: float) -> Iterator[Task]:
    """What `linear_tasks` compile, for the bases of pairs, blocks and knees."""
    for base in (FOUR_BIT, OTHER_BASES[0]):
        yield from linear_tasks(base, LLAMA.linears, RATIOS, device, link_gb_s)


def main() -> None:
    """Parse the arguments and measure, or compile one part of the kernels."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(NAME))
    parser.add_argument("--seconds", type=float, default=SECONDS, help="no section begins later than this")
    parser.add_argument("--only", action="append", default=[], help="sections that begin so, repeatable")
    parser.add_argument("--warm", metavar="I/N", help="only compile every Nth kernel from the Ith on")
    parser.add_argument("--link", type=float, default=50.0, help="GB/s to compile for")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        parser.error("there is no GPU that torch can use")
    if arguments.warm:
        part, parts = (int(number) for number in arguments.warm.split("/"))
        run_part(list(kernel_tasks(torch.device("cuda"), arguments.link)), part, parts)
        return
    measure(arguments.out, arguments.seconds, tuple(arguments.only))


if __name__ == "__main__":
    main()
