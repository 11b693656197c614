"""`int8x`: the lossless container of INT8 weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec

from app.cli import work
from app.cli.quality import quality_of, quality_options


class Levels(click.ParamType):
    """Whole numbers separated by commas."""

    name = "levels"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[int]:
        """The widths; the worker says which are possible."""
        try:
            return [int(width) for width in str(value).split(",")]
        except ValueError:
            self.fail(f"{value!r} is not a list of whole numbers such as 3,5,8", param, ctx)


@click.group()
def int8x() -> None:
    """Encode, verify and inspect INT8-X weights."""


@int8x.command()
@click.argument("src")
@click.argument("dst", type=click.Path(path_type=Path))
@quality_options
@click.option(
    "--codec",
    type=click.Choice(["auto", "adaptive", "bitmap", "raw"]),
    help="One codec for every tensor; auto takes the smallest for each.",
)
@click.option(
    "--levels", type=Levels(), metavar="3,5,8", help="Bits of the levels of every bitmap; left out: the best."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def encode(
    src: str, dst: Path, codec: str | None, levels: list[int] | None, as_json: bool, **wish: Any
) -> None:
    """Write the weights of SRC (a folder, a .gguf file, or a model's name) as INT8-X into the folder DST."""
    source = str(Path(src).resolve()) if Path(src).exists() else src
    quality = msgspec.to_builtins(quality_of(**wish))
    options = {"quality": quality, "codec": codec, "levels": levels}
    result = work.job("int8x_encode", source=source, destination=str(dst.resolve()), **options)
    _print(result, as_json)


@int8x.command()
@click.argument("model", required=False)
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def verify(model: str | None, as_json: bool) -> int:
    """Check that every stored weight of MODEL decodes to the INT8 value it was made from."""
    result = work.job("int8x_verify", model=_prepared(model))
    _print(result, as_json)
    return 0 if result.get("lossless") else 1


@int8x.command()
@click.argument("model", required=False)
@click.option("--tensors", is_flag=True, help="Every tensor instead of every kind.")
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE.svg|png",
    help="Draw the weights, and every tensor's size against its entropy.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def inspect(model: str | None, tensors: bool, plot: Path | None, as_json: bool) -> None:
    """Show codecs, levels, scales and bits per weight of MODEL, beside its entropy."""
    from app.cli import int8x_table

    picture = str(plot.resolve()) if plot else None
    result = work.job("int8x_inspect", model=_prepared(model), plot=picture)
    if as_json:
        work.print_json(result)
    else:
        int8x_table.show(result, tensors)


def _prepared(model: str | None) -> str:
    """A path as it is, else the name in the store; raises DecdecError for a model that is not prepared."""
    from runtime import store
    from runtime.sources import catalogue

    if model and Path(model).exists():
        return str(Path(model).resolve())
    return store.find(model or catalogue.default().name).name


def _print(result: dict[str, Any], as_json: bool) -> None:
    """JSON, or one fact a line."""
    if as_json:
        work.print_json(result)
    else:
        work.print_facts(result)
