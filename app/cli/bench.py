"""`bench`: what INT8-X and corrections take on this machine, beside the papers' figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from app.cli import work
from app.cli.lists import WordList
from app.text import one_line

Row = dict[str, Any]
_OUT = click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), metavar="FOLDER", help="Write files there."
)
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON document.")


@click.group()
def bench() -> None:
    """Measure INT8-X and corrections on this machine."""


@bench.command()
@click.option(
    "--model", metavar="MODEL", help="Real weights; left out: the default model, if it is prepared."
)
@click.option(
    "--paper",
    type=click.Choice(["int8x", "decdec"]),
    default="int8x",
    show_default=True,
    help="int8x: sizes and speeds; decdec: errors, outliers, perplexities (an hour or more).",
)
@click.option("--presets", is_flag=True, help="int8x: the presets that measure sensitivities first, too.")
@click.option("--text", type=_FILE, metavar="FILE", help="decdec: what perplexities are measured on.")
@click.option("--bases", type=WordList(), metavar="LIST", help="decdec: of figure 13, as awq3,int8x3.4.")
@click.option("--controls", type=WordList(), metavar="LIST", help="decdec: of these, also figure 16.")
@click.option("--windows", type=click.IntRange(min=1), metavar="N", help="decdec: only the first N windows.")
@click.option("--context", type=click.IntRange(min=2), metavar="N", help="decdec: tokens in a window.")
@click.option(
    "--results", type=_FILE, multiple=True, metavar="FILE", help="decdec: of `eval bbh` or `eval judge`."
)
@click.option("--times", metavar="BASE", help="decdec: time the linears of this prepared base for figure 12.")
@_OUT
@_JSON
def tables(
    model: str | None, paper: str, presets: bool, out: Path | None, as_json: bool, **wish: Any
) -> None:
    """The tables of one of the papers, each figure beside the paper's where there is one."""
    if paper == "int8x":
        result = work.job("bench_tables", model=model, presets=presets or None, out=_folder(out))
    else:
        result = _decdec(model, out, wish)
    _print(result, as_json)


def _decdec(model: str | None, out: Path | None, wish: dict[str, Any]) -> Row:
    from app.models import target

    if wish["text"] is None:
        raise click.UsageError("--paper decdec needs a --text")
    wanted, files = target(model), [str(path.resolve()) for path in wish.pop("results")]
    name = wanted.name if wanted.prepared else wanted.source
    text = str(wish.pop("text").resolve())
    return work.job("bench_decdec", model=name, text=text, results=files, out=_folder(out), **wish)


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
    _print_failures(result)


@bench.command()
@click.option("--model", metavar="MODEL", help="A prepared model; on a CPU left out: the default one.")
@click.option(
    "--seconds", type=click.FloatRange(min=0), metavar="N", help="On a GPU: begin nothing later than this."
)
@_OUT
@_JSON
def decode(model: str | None, seconds: float | None, out: Path | None, as_json: bool) -> None:
    """Speed of answers: on a GPU of models of known shapes beside other engines (minutes), else of MODEL."""
    result = work.job("bench_decode", model=model, seconds=seconds, out=_folder(out))
    _print(result, as_json)
    _print_failures(result)


def _print_failures(result: Row) -> None:
    """Sections that failed, on stderr."""
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
