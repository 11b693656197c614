"""The worker's benchmark jobs: the INT8-X paper's tables, and speeds of this machine."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from kernels.int8x import decode_adaptive, encode_adaptive
from runtime import store
from runtime.bench import plots
from runtime.bench.coding import ADAPTIVE, CODECS, Outcome, code_all
from runtime.bench.compare_table import compare_table, ladder_table
from runtime.bench.forecast import forecast_rows
from runtime.bench.level_tables import search_table, sweep_table
from runtime.bench.mixture import paper_mixture
from runtime.bench.samples import Sample, middle_block, random_sample, real_sample
from runtime.bench.shapes import LLAMA, MINICPM, RANDOM_MODELS
from runtime.bench.size_tables import Outcomes, lossless_table, size_table
from runtime.bench.speed import speed_rows, speed_table
from runtime.bench.table import Row, Table, markdown, same_columns
from runtime.evaluate.source import locate
from runtime.int8x.origin import fingerprint
from runtime.progress import JobContext
from runtime.protocol.quality import Preset, Quality
from runtime.rate.rounder import Kept
from runtime.sources import catalogue
from runtime.store import atomic
from runtime.store.temporary import temporary_folder

Coded = list[tuple[Sample, Outcomes]]
# Enough blocks of the large model to time; all of them would fill a small GPU.
LLAMA_BLOCKS = 4
# As much as a feed-forward matrix of the paper's model, and a little more.
SPEED_SHAPE = (9216, 1536)


def tables(args: dict[str, Any], ctx: JobContext) -> dict[str, Any]:
    """The paper's tables from `model` (path or name; the default where it is prepared) and random shapes.

    `presets`: balanced and small as well, which measure sensitivities first (minutes). `out`: a folder for
    tables.md, tables.json and pictures.
    """
    found = _tables(_model(args.get("model"), ctx), bool(args.get("presets")), ctx)
    if args.get("out"):
        _write(Path(args["out"]), found)
    return {"tables": [table.as_json() for table in found]}


def int8x(args: dict[str, Any], ctx: JobContext) -> dict[str, Any]:
    """Speeds of this machine on random weights and on `models` (paths or names; else the default one).

    With a GPU also products and decoders there. `out`: a folder for int8x-speed.md and .json.
    """
    wanted: list[str | None] = list(args.get("models") or [None])
    models = [model for name in wanted if (model := _model(name, ctx))]
    _warm_up()
    found = [_cpu_table(models, ctx)]
    if torch.cuda.is_available():
        found += list(_gpu_tables([path for _, path in models], ctx))
    if args.get("out"):
        _write_tables(Path(args["out"]), "int8x-speed", found)
    return {"tables": [table.as_json() for table in found]}


def _cpu_table(models: list[tuple[str, Path]], ctx: JobContext) -> Table:
    random = paper_mixture().draw(*SPEED_SHAPE).float()
    rows = speed_rows(f"random {SPEED_SHAPE[0]}x{SPEED_SHAPE[1]}", [random])
    for name, path in models:
        ctx.progress("speed", 0, 1, "models", name)
        rows += speed_rows(name, middle_block(path))
    return speed_table(rows, os.cpu_count() or 1)


def _gpu_tables(models: list[Path], ctx: JobContext) -> Iterator[Table]:
    from runtime.bench import run_gpu

    rows: dict[str, list[Row]] = {}
    for name, section in run_gpu.sections(models):
        ctx.progress("GPU", 0, 0, "sections", name)
        rows[name] = list(section())
    rows["forecast"] = list(forecast_rows(run_gpu.forecast_inputs(rows), run_gpu.measured_card()))
    for name, found in rows.items():
        yield Table(name, name, same_columns(found))


def _tables(model: tuple[str, Path] | None, presets: bool, ctx: JobContext) -> list[Table]:
    _warm_up()
    coded = list(_coded(model, ctx))
    extra = list(_preset_rows(*model, presets, ctx)) if model else []
    samples = [sample for sample, _ in coded]
    ctx.progress("tables", len(samples), len(samples), "models")
    return [
        size_table([*coded, *extra]),
        lossless_table([*coded, *extra]),
        compare_table(coded, *_tokens(ctx)),
        ladder_table(samples[-1]),
        search_table(samples),
        sweep_table(samples),
    ]


def _coded(model: tuple[str, Path] | None, ctx: JobContext) -> Iterator[tuple[Sample, Outcomes]]:
    if model:
        yield _code(real_sample(model[1], model[0], Quality(preset="paper"), ctx), ctx)
    for shape in RANDOM_MODELS:
        yield _code(random_sample(shape), ctx)


def _code(sample: Sample, ctx: JobContext) -> tuple[Sample, Outcomes]:
    outcomes = {codec.name: Outcome() for codec in CODECS}
    for done, matrix in enumerate(sample.matrices, 1):
        for codec in CODECS:
            outcomes[codec.name].add(codec, matrix)
        ctx.progress("code", done, len(sample.matrices), "tensors", sample.name)
    return sample, outcomes


def _preset_rows(
    name: str, path: Path, measured: bool, ctx: JobContext
) -> Iterator[tuple[Sample, dict[str, Outcome]]]:
    wanted: tuple[Preset, ...] = ("fine", "balanced", "small") if measured else ("fine",)
    with temporary_folder() as folder:
        kept = Kept(folder, fingerprint(path))
        for preset in wanted:
            sample = real_sample(path, f"{name}, {preset}", Quality(preset=preset), ctx, kept)
            yield sample, code_all(sample.matrices, [ADAPTIVE])


def _tokens(ctx: JobContext) -> tuple[list[Row], list[str]]:
    """Rows of whole tokens on a GPU, and what failed; without a GPU there are none."""
    rows: list[Row] = []
    failures: list[str] = []
    if torch.cuda.is_available():
        from runtime.bench.one_token import measure_formats
        from runtime.bench.token_formats import FORMATS

        def fail(name: str, error: Exception) -> None:
            failures.append(f"{name} was not timed: {error}.")

        for shape, blocks in ((MINICPM, None), (LLAMA, LLAMA_BLOCKS)):
            for row in measure_formats(shape, "cuda", FORMATS, fail, blocks):
                ctx.progress("token", len(rows), 0, "formats", shape.name)
                rows.append(row)
    return rows, failures


def _warm_up() -> None:
    """Load compiled loops, so that no figure holds their loading."""
    q = torch.arange(-128, 128).to(torch.int8).reshape(8, 32)
    decode_adaptive(encode_adaptive(q))
    for codec in CODECS:
        codec.decode(codec.encode(q))


def _model(model: str | None, ctx: JobContext) -> tuple[str, Path] | None:
    if model:
        return Path(model).stem if Path(model).exists() else model, locate(model, ctx)
    name = catalogue.default().name
    if name not in {record.name for record in store.models()}:
        return None
    return name, locate(name, ctx)


def _write(folder: Path, found: list[Table]) -> None:
    _write_tables(folder, "int8x-tables", found)
    by_key = {table.key: table for table in found}
    plots.draw_sizes(by_key["2.3"], folder / "int8x-sizes.svg")
    plots.draw_sweep(by_key["4.2"], folder / "int8x-first-level.svg")


def _write_tables(folder: Path, name: str, found: list[Table]) -> None:
    document = {"tables": [table.as_json() for table in found]}
    atomic.write_bytes(folder / f"{name}.md", "\n".join(markdown(table) for table in found).encode())
    atomic.write_bytes(folder / f"{name}.json", (json.dumps(document, indent=1) + "\n").encode())
