"""The worker's benchmark of corrections on a GPU."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import torch

from runtime.errors import DecdecError
from runtime.progress import JobContext


def kernels(args: dict[str, Any], ctx: JobContext) -> dict[str, Any]:
    """Products, fetches, tables and the tuner's promise on the GPU, for Llama-3-8B's shapes.

    `out`: a folder for dec-gpu.md, .json and pictures. Raises DecdecError without a GPU.
    """
    if not torch.cuda.is_available():
        raise DecdecError(
            "The kernels cannot be measured", "torch finds no NVIDIA GPU", "run: decdec-chat doctor"
        )
    from runtime.bench import run_dec_gpu

    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(args["out"]) if args.get("out") else Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        report = run_dec_gpu.measure(folder, begin=lambda name: ctx.progress("GPU", 0, 0, "sections", name))
    return {"tables": [table.as_json() for table in report.tables()], "failures": report.failures}
