"""`bench`: what INT8-X and corrections take on this machine, beside the papers' figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from app.cli import work
from app.text import one_line

Row = dict[str, Any]
_OUT = click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), metavar="FOLDER", help="Write files there."
)
_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON document.")


@click.group()
def bench() -> None:
    """Measure INT8-X and corrections on this machine."""


@bench.command()
@click.option(
    "--model", metavar="MODEL", help="Real weights; left out: the default model, if it is prepared."
)
@click.option("--presets", is_flag=True, help="Also the presets that measure sensitivities first (minutes).")
@_OUT
@_JSON
def tables(model: str | None, presets: bool, out: Path | None, as_json: bool) -> None:
    """The tables of the INT8-X paper, each figure beside the paper's."""
    result = work.job("bench_tables", model=model, presets=presets or None, out=_folder(out))
    _print(result, as_json)


@bench.command()
@click.option("--model", "models", multiple=True, metavar="MODEL", help="Real weights; may be repeated.")
@_OUT
@_JSON
def int8x(models: tuple[str, ...], out: Path | None, as_json: bool) -> None:
    """Speed of encoding, decoding and, with a GPU, of products with INT8-X weights."""
    result = work.job("bench_int8x", models=list(models), out=_folder(out))
    _print(result, as_json)


@bench.command()
@_OUT
@_JSON
def kernels(out: Path | None, as_json: bool) -> None:
    """On a GPU: low-bit products, fetches from host memory, and what the tuner promises (minutes)."""
    result = work.job("bench_kernels", out=_folder(out))
    _print(result, as_json)
    for name, why in result.get("failures", {}).items():
        click.echo(one_line(f"{name} failed: {why}"), err=True)


def _folder(out: Path | None) -> str | None:
    return str(out.resolve()) if out else None


def _print(result: Row, as_json: bool) -> None:
    """JSON, or every table with its title and notes."""
    if as_json:
        work.print_json(result)
        return
    for table in result["tables"]:
        click.echo(table["title"])
        work.print_table(table["rows"])
        for note in table["notes"]:
            click.echo(one_line(note))
        click.echo()
