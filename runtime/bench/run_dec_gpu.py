"""Corrections on a GPU, measured in one run: `python -m runtime.bench.run_dec_gpu --out FOLDER`.

Writes FOLDER/dec-gpu.json and .md after every row, and pictures; goes on when a section fails. Needs torch,
triton, numba, msgspec and platformdirs, and matplotlib for the pictures.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch

from runtime.bench import dec_gpu_plots
from runtime.bench.dec_blocks import (
    TunedBlock,
    efficiency_rows,
    fresh_tuning,
    promise_rows,
    same_bits,
    step_rows,
    tune_block,
)
from runtime.bench.dec_pairs import RATIOS, knee_rows, pair_rows
from runtime.bench.dec_products import compensation_rows, product_rows
from runtime.bench.gpu_report import GpuReport, Section
from runtime.bench.run_gpu import about
from runtime.bench.shapes import LLAMA
from runtime.tuner import plot
from runtime.tuner.compiling import Case, compile_all
from runtime.tuner.link import link_gb_s
from runtime.tuner.replays import warm_up

Row = dict[str, Any]
NAME, TITLE = "dec-gpu", "Corrections on a GPU"
SECONDS, COMPILE_SECONDS = 500.0, 150.0
FOUR_BIT, OTHER_BASES = "awq4", ("awq3", "int8x3.4")
_PARTS = (
    "base: input (norm or gate, digits) and product. base rows x2.7 and x6.7: products with so many times the"
    " rows stand in for an RTX 4090 and an RTX 4050 Laptop, whose memory is slower beside their link."
    " efficiency: bytes fetched over what 50 GB/s could bring in the base's time."
)
NOTES = {
    "tuner": "Llama-3-8B's shapes from nothing: kernels compiled, link measured, curves, search, joint"
    " check. predicted: single linears added up; measured: the block in one graph; measured again: after it.",
    "products": "us: median of replays of a CUDA graph over copies that no cache holds, input prepared"
    " before. share: TB/s over those of bf16 by cuBLAS in the same run.",
    "compensation": "The fetch alone, in a kernel of its own; its start counts.",
    "pairs": _PARTS + " ready: selection and idle fetch programs, nothing corrected.",
    "blocks": _PARTS + " All four linears in one graph, selection included, sums not (see steps). Tables"
    " and launches that the tuner finds for one slowdown when bytes count; one for all: with one choice of"
    " launches.",
    "promise": "As under tuner, with more base rows; a table's worth is its gain in perplexity.",
    "knees": "3 bits: largest k_chunk of a linear alone within a slowdown, beside the paper's knees.",
    "same bits": "Results filled with NaN before every replay; compared bit by bit with the first.",
    "steps": "Sums included: into the residual stream after o and down, in the gate after gate_up, by a"
    " kernel of its own after qkv, where a step has its attention. The base has stream and gate, too.",
}


class Measurements:
    """The sections, what they share, and the pictures made of them."""

    def __init__(
        self, report: GpuReport, device: torch.device, begin: Callable[[str], None] = lambda name: None
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
        run("products", partial(product_rows, self.device))
        run("compensation", lambda: compensation_rows(self.device, self.link))
        for ratio in RATIOS:
            run(f"blocks {FOUR_BIT} x{ratio:g}", partial(self.block_rows, FOUR_BIT, ratio))
        run("same bits", self.same_bits_rows)
        run("steps", self.step_rows)
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
        """Every kernel of the other sections, in parallel."""
        shapes = dict(LLAMA.linears)
        cases = [Case(FOUR_BIT, shapes, ratio, self.link) for ratio in RATIOS[1:]]
        cases += [Case(base, shapes, 1.0, self.link) for base in (*OTHER_BASES, "squeezellm4", "squeezellm3")]
        yield {"cases": len(cases), "seconds": compile_all(cases, self.device, COMPILE_SECONDS)}

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
        """Determinism of every block there is."""
        for block in list(self.blocks.values()):
            yield same_bits(block)

    def step_rows(self) -> Iterator[Row]:
        """With the sums; blocks end their use here, for they fill the device."""
        for block in list(self.blocks.values()):
            yield from step_rows(block)
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
    begin: Callable[[str], None] = lambda name: None,
) -> GpuReport:
    """All sections into a folder; the report. `begin` hears of every section."""
    facts = {**about(), "measured by": "python -m runtime.bench.run_dec_gpu"}
    report = GpuReport(folder, facts, seconds, NOTES, only, NAME, TITLE)
    with torch.inference_mode():
        Measurements(report, torch.device("cuda", torch.cuda.current_device()), begin).all()
    return report


def main() -> None:
    """Parse the arguments and measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(NAME))
    parser.add_argument("--seconds", type=float, default=SECONDS, help="no section begins later than this")
    parser.add_argument("--only", action="append", default=[], help="sections that begin so, repeatable")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        parser.error("there is no GPU that torch can use")
    measure(arguments.out, arguments.seconds, tuple(arguments.only))


if __name__ == "__main__":
    main()
