"""The entry for `bench tables --paper decdec`: figures and tables of the DecDEC paper for one model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec
import torch

from runtime import locations
from runtime.bench import dec_plots, dec_tables_quality, dec_tables_times
from runtime.bench.dec_tables_answers import answer_tables
from runtime.bench.dec_tables_errors import Curve, curves, errors_table
from runtime.bench.dec_tables_inputs import seen
from runtime.bench.dec_tables_outliers import Outliers, outliers, outliers_table
from runtime.bench.dec_tables_quality import Scope
from runtime.bench.dec_tables_times import profiles, times_table, tuner_table
from runtime.bench.table import Table, markdown
from runtime.evaluate.bases import Setting, maker
from runtime.evaluate.request import BaseWish, Request
from runtime.evaluate.runner import Runner, compute_device
from runtime.evaluate.source import locate, read_text, windows
from runtime.model.source import SourceModel
from runtime.progress import JobContext
from runtime.store import atomic
from runtime.text.encoder import encoder

NAME = "decdec-tables"
BASES = ("awq3", "awq3.5", "awq4", "squeezellm3", "squeezellm3.5", "squeezellm4", "int8x3.4", "rtn3", "rtn4")
CONTROLS = ("awq3", "awq4")
WIDTHS = ("awq3",)
ERRORS = ("awq3", "awq4")


def decdec(args: dict[str, Any], ctx: JobContext) -> dict[str, Any]:
    """Figures 4, 5, 12 to 16 and tables 2 and 3 for the model of `args`, on the text file `text`.

    bases: of figure 13; controls: of figure 16; widths: of table 2; errors: of figure 4; as in `eval ppl`.
    windows, context: of perplexities. results: files of `eval bbh` and `eval judge`. times: the prepared base
    whose linears are timed here, on an idle machine. out: a folder for markdown, JSON and pictures.
    What was evaluated before is not evaluated again. Result: {"tables": [...]}.
    """
    scope = _scope(args)
    folder = locations.evaluations() / "sensitivities"
    errors, found = _activations(scope.request, _wishes(args, "errors", ERRORS), folder, ctx)
    measured = dec_tables_quality.measure(scope, folder, ctx)
    times = _times(args, ctx)
    tables = [
        errors_table(errors),
        outliers_table(found),
        times_table(times),
        *dec_tables_quality.perplexity_tables(measured),
        *answer_tables([Path(path) for path in args.get("results") or ()]),
        dec_tables_quality.selection_table(measured, scope.controls),
        dec_tables_quality.width_table(measured, scope.widths),
        tuner_table(profiles(scope.request.model)),
    ]
    if args.get("out"):
        out = Path(args["out"])
        raw = {"curves": errors, "outliers": found, "measured": measured, "times": times}
        _write(out, _heading(scope.request), tables, raw)
        _draw(out, tables, errors, found, measured, times)
    return {"tables": [table.as_json() for table in tables]}


def _scope(args: dict[str, Any]) -> Scope:
    given = {key: args[key] for key in ("model", "text", "windows", "context") if args.get(key)}
    request = Request.parse({**given, "base": args.get("bases") or BASES, "k_chunk": [8]})
    controls, widths = _wishes(args, "controls", CONTROLS), _wishes(args, "widths", WIDTHS)
    return Scope(
        request,
        tuple(base for base in controls if base in request.bases),
        tuple(base for base in widths if base in request.bases),
    )


def _wishes(args: dict[str, Any], key: str, default: Sequence[str]) -> tuple[BaseWish, ...]:
    return Request.parse({"model": "", "text": "", "base": args.get(key) or default}).bases


def _activations(
    request: Request, bases: Sequence[BaseWish], folder: Path, ctx: JobContext
) -> tuple[list[Curve], list[Outliers]]:
    """What figures 4 and 5 show, from the first window of the text."""
    with torch.no_grad():
        path = locate(request.model, ctx)
        model = SourceModel.open(path)
        tokens = encoder(model.checkpoint)(read_text(Path(request.text)))
        window = windows(tokens, request.context, 1)[0]
        setting = Setting(model, path, request, folder, ctx)
        makers = {base.name: maker(base, setting) for base in bases}
        errors: list[Curve] = []
        found: list[Outliers] = []
        for block in seen(setting, Runner(model, compute_device()), window, ctx):
            errors += curves(block, makers)
            found += outliers(block)
    return errors, found


def _times(args: dict[str, Any], ctx: JobContext) -> dec_tables_times.Measured | None:
    if not args.get("times"):
        return None
    return dec_tables_times.measure(args["model"], args["times"], ctx)


def _heading(request: Request) -> str:
    """What was measured on what."""
    count = f"the first {request.windows} windows" if request.windows else "all windows"
    return (
        f"# The DecDEC paper's figures and tables for {Path(request.model).stem}\n\n"
        f"Made by `decdec-chat bench tables --paper decdec`: {count} of {request.context} tokens of"
        f" {Path(request.text).name}, every position corrected; activations from the first window.\n"
    )


def _write(folder: Path, heading: str, tables: Sequence[Table], raw: dict[str, Any]) -> None:
    document = {"tables": [table.as_json() for table in tables], **_plain(raw)}
    text = "\n".join([heading, *map(markdown, tables)])
    atomic.write_bytes(folder / f"{NAME}.md", text.encode())
    entries = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in document.items()]
    atomic.write_bytes(folder / f"{NAME}.json", ("{\n" + ",\n".join(entries) + "\n}\n").encode())


def _plain(raw: dict[str, Any]) -> dict[str, Any]:
    """What pictures are drawn from, as plain values."""
    plain = {key: [asdict(each) for each in raw[key]] for key in ("curves", "outliers")}
    return {**plain, "measured": raw["measured"], "times": msgspec.to_builtins(raw["times"])}


def _draw(
    folder: Path,
    tables: Sequence[Table],
    errors: Sequence[Curve],
    found: Sequence[Outliers],
    measured: dec_tables_quality.Measured,
    times: dec_tables_times.Measured | None,
) -> None:
    by_key = {table.key: table for table in tables}
    dec_plots.draw_errors(errors, folder / "decdec-errors.svg")
    dec_plots.draw_outliers(found, folder / "decdec-outliers.svg")
    dec_plots.draw_perplexity(measured, folder / "decdec-perplexity.svg")
    if by_key["figure 16"].rows:
        dec_plots.draw_selection(measured, by_key["figure 16"], folder / "decdec-selection.svg")
    if times is not None:
        dec_plots.draw_times(times, folder / "decdec-times.svg")
