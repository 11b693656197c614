"""The worker's benchmark of corrections on a GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from runtime.errors import DecdecError
from runtime.progress import JobContext
from runtime.store.oserrors import translated
from runtime.store.temporary import temporary_folder


def kernels(args: dict[str, Any], ctx: JobContext) -> dict[str, Any]:
    """Products, fetches, tables and the tuner's promise on the GPU, for Llama-3-8B's shapes.

    `out`: a folder for dec-gpu.md, .json and pictures. Raises DecdecError without a GPU.
    """
    if not torch.cuda.is_available():
        raise DecdecError(
            "The kernels cannot be measured", "torch finds no NVIDIA GPU", "run: decdec-chat doctor"
        )
    from runtime.bench import run_dec_gpu

    with temporary_folder() as temporary:
        folder = Path(args["out"]) if args.get("out") else temporary
        with translated(folder, "Making the folder of the report"):
            folder.mkdir(parents=True, exist_ok=True)
        report = run_dec_gpu.measure(folder, begin=lambda name: ctx.progress("GPU", 0, 0, "sections", name))
    return {"tables": [table.as_json() for table in report.tables()], "failures": report.failures}
