"""`tune`: measure the device for the slider."""

from __future__ import annotations

from typing import Literal

import click

from app.cli import work


@click.command()
@click.option("-m", "--model", metavar="MODEL", help="Default: the default model.")
@click.option(
    "--base",
    type=click.Choice(["rtn4", "rtn3"]),
    default="rtn4",
    show_default=True,
    help="The low-bit weights to tune.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def tune(model: str | None, base: Literal["rtn4", "rtn3"], as_json: bool) -> None:
    """Measure this device and store what every slider position may correct."""
    result = work.run(_commands(model, base))
    if as_json:
        work.print_json(result)
        return
    click.echo(f"{result.get('model')} is tuned on {result.get('device')}.")
    rows = [{"slowdown": f"{pct} %", **table} for pct, table in result.get("detents", {}).items()]
    work.print_table(rows)


def _commands(model: str | None, base: Literal["rtn4", "rtn3"]) -> list[work.Command]:
    from app.models import target
    from runtime.protocol.commands import Prepare, Tune

    wanted = target(model)
    prepare = [] if wanted.prepared else [Prepare(wanted.source)]
    return [*prepare, Tune(wanted.name, base)]
