"""Options that name low-bit bases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from app.cli.quality import Size
from runtime.errors import DecdecError
from runtime.protocol.bases import DEFAULT, METHODS, PACKED, BaseSpec
from runtime.protocol.commands import LOSSLESS

F = TypeVar("F", bound=Callable[..., Any])


def answering_base(**how: Any) -> Callable[[F], F]:
    """The option `--base` of what answers; `how` as click.option takes it."""
    about = "The low-bit weights to answer with, such as awq3 or int8x3.4; int8 is lossless."
    return click.option("--base", type=BaseName(lossless=True), help=about, **how)


class BaseName(click.ParamType):
    """`awq4`, `awq3.5`, `int8x3.4`, …; `bare`: also a method alone, `lossless`: also int8."""

    name = "base"

    def __init__(self, bare: bool = False, lossless: bool = False) -> None:
        self.bare, self.lossless = bare, lossless

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name as it is stored: `awq4.0` is `awq4`."""
        text = str(value)
        if (self.bare and text in METHODS) or (self.lossless and text == LOSSLESS):
            return text
        try:
            return BaseSpec.parse(text).name
        except DecdecError as error:
            self.fail(error.sentence, param, ctx)


_OPTIONS = (
    click.option(
        "--continuations",
        is_flag=True,
        help="Calibrate on the model's own continuations of the prompts too: slower, some percent less KL.",
    ),
    click.option(
        "--base",
        type=BaseName(bare=True),
        multiple=True,
        metavar="BASE",
        help=f"A low-bit base to make, {DEFAULT.name} unless told: awq3, awq3.5, squeezellm3, int8x3.4,"
        " rtn4, …; may be given several times.",
    ),
    click.option(
        "--fit",
        type=Size(),
        metavar="SIZE",
        help="Choose the bits of the base such that the weights take at most SIZE, such as 3.2GB.",
    ),
    click.option(
        "--base-from",
        metavar="FOLDER",
        help="A 4-bit AWQ or GPTQ checkpoint of the same model, to take as the base packed4.",
    ),
)


BASE_OPTIONS = ("base", "fit", "base_from", "continuations")


def base_options(command: F) -> F:
    """Add the options to a command, which gives them to `bases_of`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def bases_of(
    base: tuple[str, ...], fit: int | None, base_from: str | None, continuations: bool
) -> dict[str, Any]:
    """Fields of a Prepare command; a usage error where the options contradict each other."""
    bare = [name for name in base if name in METHODS]
    if fit is None and bare:
        raise click.UsageError(f"--base {bare[0]} needs bits, such as {bare[0]}4, or --fit SIZE")
    if fit is not None and len(bare) != len(base):
        raise click.UsageError("--fit chooses the bits: name the method alone, such as --base awq")
    if base_from is not None:
        bases = (*base, PACKED.name)
    else:
        bases = base or ((DEFAULT.method,) if fit is not None else (DEFAULT.name,))
    return {"bases": bases, "fit": fit, "base_from": base_from, "continuations": continuations}
