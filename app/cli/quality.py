"""Options that say how good or how small the INT8 form of a model is to be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from runtime.protocol.quality import PRESETS, Quality

F = TypeVar("F", bound=Callable[..., Any])

UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
SCALES = {"tensor": "paper", "row": "fine"}


class Size(click.ParamType):
    """A size such as 1.2GB or 800MB."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Bytes."""
        text = str(value).replace(" ", "").upper()
        number = text.rstrip("BKMGT")
        try:
            return int(float(number) * UNITS[text[len(number) :]])
        except (ValueError, KeyError, OverflowError):
            self.fail(f"{value!r} is not a size such as 1.2GB or 800MB", param, ctx)


_OPTIONS = (
    click.option(
        "--preset",
        type=click.Choice(PRESETS),
        help="balanced: KL about 0.02 (the default); small: about 3.4 bits; fine: one scale per row;"
        " paper: one scale per tensor.",
    ),
    click.option("--bits", type=float, metavar="N", help="Bits per weight of the linears, such as 4.2."),
    click.option("--kl", type=float, metavar="NATS", help="Predicted KL to the source, such as 0.02."),
    click.option("--size", type=Size(), metavar="SIZE", help="Of all INT8-X files, such as 1.2GB."),
    click.option("--scale", type=click.Choice(list(SCALES)), help="tensor: preset paper; row: preset fine."),
)


def quality_options(command: F) -> F:
    """Add the options to a command, which takes them as `**wish`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def quality_of(
    preset: str | None = None,
    bits: float | None = None,
    kl: float | None = None,
    size: int | None = None,
    scale: str | None = None,
) -> Quality | None:
    """The wish the options express, None if there is none; DecdecError if they contradict each other."""
    wishes = {"preset": preset or SCALES.get(scale or ""), "bits": bits, "kl": kl, "bytes": size}
    if preset and scale:
        raise click.UsageError("--scale is a preset, give one of --preset and --scale")
    given = {name: wish for name, wish in wishes.items() if wish is not None}
    return Quality.parse(given) if given else None
