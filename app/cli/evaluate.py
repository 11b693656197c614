"""`eval`: quality of a model in numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec

from app.cli import work
from app.cli.quality import quality_of
from runtime.protocol.quality import PRESETS, Preset


class IntList(click.ParamType):
    """Comma-separated whole numbers."""

    name = "list"

    def convert(
        self, value: str | list[int], param: click.Parameter | None, ctx: click.Context | None
    ) -> list[int]:
        """`0,8,32` as a list."""
        if isinstance(value, list):
            return value
        try:
            numbers = [int(part) for part in value.split(",")]
        except ValueError:
            self.fail(f"{value!r} is not a list of whole numbers such as 0,8,32", param, ctx)
        if any(not 0 <= number <= 1024 for number in numbers):
            self.fail(f"{value!r}: every k_chunk must be within 0..1024", param, ctx)
        return numbers


@click.group(name="eval")
def evaluate() -> None:
    """Measure quality."""


@evaluate.command()
@click.option("-m", "--model", metavar="MODEL", help="Default: the default model.")
@click.option("--text", type=click.Path(exists=True, dir_okay=False, path_type=Path), required=True)
@click.option(
    "--base",
    type=click.Choice(["bf16", "int8", "int8x", "rtn", "awq", "squeezellm"]),
    default="rtn",
    show_default=True,
)
@click.option("--bits", type=float, metavar="N", help="rtn: 3 or 4 (the default); int8x: any rate.")
@click.option("--kl", type=float, metavar="NATS", help="int8x: the predicted KL to the source.")
@click.option("--preset", type=click.Choice(PRESETS), help="int8x: balanced unless told.")
@click.option("--k-chunk", type=IntList(), metavar="LIST", default="0", help="Channels per 1024, as 0,8,32.")
@click.option(
    "--select",
    type=click.Choice(["bucket", "exact", "static", "random"]),
    default="bucket",
    show_default=True,
)
@click.option(
    "--scale",
    type=click.Choice(["row", "tensor"]),
    default="row",
    show_default=True,
    help="Granularity of the int8 base's scales.",
)
@click.option("--windows", type=click.IntRange(min=1), metavar="N", help="Only the first N windows.")
@click.option("--context", type=click.IntRange(min=2), metavar="N", help="Tokens in a window.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def ppl(
    model: str | None,
    text: Path,
    base: str,
    bits: float | None,
    kl: float | None,
    preset: Preset | None,
    k_chunk: list[int],
    select: str,
    scale: str,
    windows: int | None,
    context: int | None,
    as_json: bool,
) -> None:
    """Perplexity of MODEL on a text file, and what correction gives back."""
    from app.models import target

    wanted = target(model)
    result = work.job(
        "eval_ppl",
        model=wanted.name if wanted.prepared else wanted.source,
        text=str(text.resolve()),
        base=base,
        bits=bits,
        quality=_quality(base, bits, kl, preset),
        k_chunk=k_chunk,
        select=select,
        scale=scale,
        windows=windows,
        context=context,
    )
    if as_json:
        work.print_json(result)
        return
    click.echo(f"{result.get('model')} on {text.name}, {result.get('tokens')} tokens")
    work.print_table(result.get("rows", []))


def _quality(base: str, bits: float | None, kl: float | None, preset: str | None) -> dict[str, Any] | None:
    if base != "int8x":
        if kl is not None or preset:
            raise click.UsageError("--kl and --preset belong to --base int8x")
        return None
    quality = quality_of(preset=preset, bits=bits, kl=kl)
    wish: dict[str, Any] | None = msgspec.to_builtins(quality)
    return wish
