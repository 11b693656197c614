"""`eval`: quality of a model in numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec

from app.cli import work
from app.cli.lists import IntList, NumberList, WordList
from app.cli.quality import quality_of
from app.cli.tasks import bbh, judge, mt_bench
from runtime.evaluate.request import RESIDUALS, SELECTS, Request
from runtime.protocol.quality import PRESETS, Preset


@click.group(name="eval")
def evaluate() -> None:
    """Measure quality."""


@evaluate.command()
@click.option("-m", "--model", metavar="MODEL", help="Default: the default model.")
@click.option("--text", type=click.Path(exists=True, dir_okay=False, path_type=Path), required=True)
@click.option(
    "--base",
    type=WordList(),
    metavar="LIST",
    default="rtn",
    show_default=True,
    help="bf16, int8, int8x, rtn, awq, squeezellm; with bits as in awq3.5 or int8x3.4.",
)
@click.option("--bits", type=NumberList(), metavar="LIST", help="Of bases named without, 4 unless told.")
@click.option("--kl", type=float, metavar="NATS", help="int8x: the predicted KL to the source.")
@click.option("--preset", type=click.Choice(PRESETS), help="int8x: balanced unless told.")
@click.option("--k-chunk", type=IntList(), metavar="LIST", default="0", help="Channels per 1024, as 0,8,32.")
@click.option(
    "--select",
    type=WordList(*SELECTS),
    metavar="LIST",
    default="bucket",
    show_default=True,
    help="How channels are chosen: " + ", ".join(SELECTS) + ".",
)
@click.option(
    "--residual-bits",
    type=WordList(*map(str, RESIDUALS)),
    metavar="LIST",
    default="4",
    show_default=True,
    help="Width of the residual: " + ", ".join(map(str, RESIDUALS)) + ".",
)
@click.option("--prompt", type=click.IntRange(min=0), metavar="N", help="The first N tokens are not scored.")
@click.option(
    "--prompt-correction/--no-prompt-correction",
    default=True,
    show_default=True,
    help="Whether these get every channel corrected, or none as in the paper.",
)
@click.option(
    "--scale",
    type=click.Choice(["row", "tensor"]),
    default="row",
    show_default=True,
    help="Granularity of the int8 base's scales.",
)
@click.option(
    "--continuations", is_flag=True, help="Calibrate on the model's own continuations of the prompts too."
)
@click.option("--windows", type=click.IntRange(min=1), metavar="N", help="Only the first N windows.")
@click.option("--context", type=click.IntRange(min=2), metavar="N", help="Tokens in a window.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def ppl(
    model: str | None,
    text: Path,
    kl: float | None,
    preset: Preset | None,
    as_json: bool,
    **wish: Any,
) -> None:
    """Perplexity of MODEL on a text file, and what correction gives back.

    Every base, width, selection and k_chunk is combined with every other, in one walk through the model.
    """
    from app.models import target

    wish["quality"] = _quality(wish["base"], wish["bits"], kl, preset)
    Request.parse({"model": model or "", "text": str(text), **wish})
    wanted = target(model)
    name = wanted.name if wanted.prepared else wanted.source
    result = work.job("eval_ppl", model=name, text=str(text.resolve()), **wish)
    if as_json:
        work.print_json(result)
        return
    click.echo(f"{result.get('model')} on {text.name}, {result.get('tokens')} tokens")
    work.print_table(result.get("rows", []))


for command in (bbh, mt_bench, judge):
    evaluate.add_command(command)


def _quality(
    bases: list[str], bits: list[float] | None, kl: float | None, preset: str | None
) -> dict[str, Any] | None:
    if kl is None and preset is None:
        return None
    if "int8x" not in bases:
        raise click.UsageError("--kl and --preset belong to --base int8x")
    if bits:
        raise click.UsageError("give one of --bits, --kl and --preset")
    quality: dict[str, Any] = msgspec.to_builtins(quality_of(preset=preset, kl=kl))
    return quality
