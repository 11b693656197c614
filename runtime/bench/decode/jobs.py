"""The worker's benchmark of decoding: on a GPU whole models of known shapes, else the prepared one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from runtime import devices
from runtime.bench.table import markdown
from runtime.progress import JobContext
from runtime.store import atomic
from runtime.store.temporary import temporary_folder


def decode(args: dict[str, Any], ctx: JobContext) -> dict[str, Any]:
    """Tokens a second, memory and slowdown of the device that answers.

    `model`: prepared; on a GPU measured beside models of random weights, on the CPU measured alone, the
    default where it is left out. `seconds`: on a GPU no section begins later. `out`: a folder for tables and
    JSON. Raises DecdecError for a model that is not prepared.
    """
    index = devices.answering_gpu()
    out = Path(args["out"]) if args.get("out") else None
    return _on_cpu(args.get("model"), out, ctx) if index is None else _on_gpu(index, args, out, ctx)


def _on_cpu(model: str | None, out: Path | None, ctx: JobContext) -> dict[str, Any]:
    from runtime.bench.decode.cpu_rows import cpu_table, default_model

    table = cpu_table(model or default_model(), ctx)
    result = {"tables": [table.as_json()]}
    if out:
        atomic.write_bytes(out / "decode-cpu.md", markdown(table).encode())
        atomic.write_bytes(out / "decode-cpu.json", (json.dumps(result, indent=1) + "\n").encode())
    return result


def _on_gpu(index: int, args: dict[str, Any], out: Path | None, ctx: JobContext) -> dict[str, Any]:
    from runtime.bench.decode import run

    models = [args["model"]] if args.get("model") else []
    begin = lambda name: ctx.progress("GPU", 0, 0, "sections", name)  # noqa: E731
    with temporary_folder() as folder, torch.cuda.device(index):
        seconds = float(args.get("seconds") or run.SECONDS)
        report = run.measure(out or folder, seconds, models=models, begin=begin)
    return {"tables": [table.as_json() for table in report.tables()], "failures": report.failures}
