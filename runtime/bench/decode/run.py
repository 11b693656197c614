"""Decoding on a GPU, measured in one run: `python -m runtime.bench.decode.run --out FOLDER`.

Writes FOLDER/decode-gpu.json and .md after every row and goes on when a section fails. Needs torch, triton,
numba, msgspec, platformdirs and gguf; transformers for its baselines, and for --model what a chat needs;
packages of `peers` are left out where they are missing. All of it takes longer than ten minutes: `--only` in
several calls, or the least wanted sections are not begun.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import torch

from runtime.bench.decode.built import compile_kernels
from runtime.bench.decode.notes import NOTES
from runtime.bench.decode.sections import MODES, DecodeBench
from runtime.bench.gpu_report import GpuReport
from runtime.bench.run_gpu import about
from runtime.bench.warming import Task, run_part, warm

MODULE = "runtime.bench.decode.run"
NAME, TITLE = "decode-gpu", "Decoding on a GPU"
SECONDS, WARM_SECONDS = 480.0, 120.0
MOST_PROCESSES = 12


def measure(
    folder: Path,
    seconds: float = SECONDS,
    only: Sequence[str] = (),
    models: Sequence[str] = (),
    begin: Callable[[str], object] = lambda name: None,
) -> GpuReport:
    """All sections, or those whose names begin with one of `only`, into a folder; the report.

    `models`: prepared ones, measured too. `begin` hears of every section, and may raise to end the run.
    """
    facts = {**about(), "measured by": f"python -m {MODULE}"}
    report = GpuReport(folder, facts, seconds, NOTES, tuple(only), NAME, TITLE)
    device = torch.device("cuda", torch.cuda.current_device())
    processes = max(1, min(MOST_PROCESSES, os.cpu_count() or 1))
    with torch.inference_mode():
        DecodeBench.new(report, device, partial(warm, MODULE, processes, WARM_SECONDS), models, begin).all()
    return report


def kernel_tasks(device: torch.device) -> Iterator[Task]:
    """Every mode of every shape, once."""
    for shape, modes in MODES.items():
        for mode in modes:
            yield partial(compile_kernels, shape, mode, device)


def main() -> None:
    """Parse the arguments and measure, or compile one part of the kernels."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(NAME))
    parser.add_argument("--seconds", type=float, default=SECONDS, help="no section begins later than this")
    parser.add_argument("--only", action="append", default=[], help="sections that begin so, repeatable")
    parser.add_argument("--model", action="append", default=[], help="a prepared model, repeatable")
    parser.add_argument("--home", type=Path, help="where prepared models are, if not in DECDEC_HOME")
    parser.add_argument("--warm", metavar="I/N", help="only compile every Nth kernel from the Ith on")
    arguments = parser.parse_args()
    if arguments.home:
        os.environ["DECDEC_HOME"] = str(arguments.home.resolve())
    if not torch.cuda.is_available():
        parser.error("there is no GPU that torch can use")
    if arguments.warm:
        part, parts = (int(number) for number in arguments.warm.split("/"))
        run_part(list(kernel_tasks(torch.device("cuda"))), part, parts)
        return
    measure(arguments.out, arguments.seconds, arguments.only, arguments.model)


if __name__ == "__main__":
    main()
