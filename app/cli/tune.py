"""`tune`: measure the device for the slider."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from app.cli import work
from app.cli.bases import BaseName
from runtime.protocol.bases import DEFAULT

Row = dict[str, Any]
_REPORT = "report"


@click.command()
@click.option("-m", "--model", metavar="MODEL", help="Default: the default model.")
@click.option(
    "--base",
    type=BaseName(),
    default=DEFAULT.name,
    show_default=True,
    help="The low-bit weights to tune, such as awq3 or int8x3.4.",
)
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE.svg|png",
    help="Draw the time of every linear against k_chunk.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def tune(model: str | None, base: str, plot: Path | None, as_json: bool) -> None:
    """Measure this device and store what every slider position may correct."""
    result = work.run(_commands(model, base, plot))
    report = result.pop(_REPORT, {})
    if as_json:
        work.print_json(result)
        return
    click.echo(f"{result.get('model')} is tuned on {report.get('processor') or result.get('device')}.")
    if link := report.get("link_gb_s"):
        click.echo(f"The link to host memory gives {link:.1f} GB/s.")
    work.print_table(_rows(result, report))
    work.print_table([{"": "base, µs", **result["base_us"]}, *_programs(result)])


def _commands(model: str | None, base: str, plot: Path | None) -> list[work.Command]:
    from app.models import target
    from runtime.protocol.commands import Job, Prepare, Tune

    wanted = target(model)
    prepare = [] if wanted.has(base) else [Prepare(wanted.source, wanted.name, bases=(base,))]
    if plot is None:
        return [*prepare, Tune(wanted.name, base)]
    return [*prepare, Job("tune", {"model": wanted.name, "base": base, "plot": str(plot.resolve())})]


def _rows(result: Row, report: Row) -> list[Row]:
    """One line a detent: what is corrected, what single measurements promise, and what all of it measured."""
    checked = {f"{detent['target_pct']:g}": detent for detent in report.get("detents", [])}
    return [
        {
            "slowdown": f"{pct} %",
            **{f"k_chunk {kind}": k for kind, k in table.items()},
            "predicted %": checked.get(pct, {}).get("predicted_pct"),
            "measured %": checked.get(pct, {}).get("measured_pct"),
        }
        for pct, table in result.get("detents", {}).items()
    ]


def _programs(result: Row) -> list[Row]:
    """The fetch programs, where the device has any."""
    programs = result.get("n_tb") or {}
    return [{"": "n_tb", **{kind: programs.get(kind, 0) for kind in result["base_us"]}}] if programs else []
