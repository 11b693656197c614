"""`export`: a prepared model as a folder that other programs load."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from app.cli import work

FORMATS = ("compressed-tensors",)


@click.command()
@click.argument("places", nargs=-1, required=True, metavar="[MODEL] DST")
@click.option(
    "--format",
    "layout",
    type=click.Choice(FORMATS),
    default=FORMATS[0],
    show_default=True,
    help="Weight-only INT8 that vLLM and transformers load.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def export(places: tuple[str, ...], layout: str, as_json: bool) -> None:
    """Write MODEL as plain safetensors INT8 into the new folder DST.

    MODEL is a prepared model or an INT8-X folder; left out: the default model. Nothing is overwritten.
    """
    model, destination = _sorted_out(places)
    result = work.job("export", model=model, destination=destination, format=layout)
    if as_json:
        work.print_json(result)
    else:
        _show(result)


def _sorted_out(places: tuple[str, ...]) -> tuple[str | None, str]:
    """Model and destination, paths made whole; a model's name alone is no destination."""
    from runtime import store

    if len(places) > 2:
        raise click.UsageError(f"Export takes [MODEL] DST, not {len(places)} arguments.")
    *models, destination = places
    if not models and destination in {record.name for record in store.models()}:
        raise click.UsageError(f"Say where to export it to: decdec-chat export {destination} DST")
    model = models[0] if models else None
    if model and Path(model).exists():
        model = str(Path(model).resolve())
    return model, str(Path(destination).resolve())


def _show(result: dict[str, Any]) -> None:
    from app import format
    from app.text import one_line

    files, folder = len(result["files"]), result["folder"]
    count = "one file" if files == 1 else f"{files} files"
    click.echo(one_line(f"{result['model']} is in {folder}: {count}, {format.size(result['bytes'])}."))
    for note in result["notes"]:
        click.echo(one_line(note))
    click.echo(one_line(f"Serve it with: vllm serve {shlex.quote(folder)}"))
