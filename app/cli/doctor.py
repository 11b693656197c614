"""`doctor`: what this machine can do, and why not."""

from __future__ import annotations

import click

from app.cli import work


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def doctor(as_json: bool) -> None:
    """Show devices, versions, paths, what is usable and why not."""
    from app.hardware import rows

    result = work.job("doctor")
    if as_json:
        work.print_json(result)
        return
    found = rows(result)
    width = max((len(row.title) for row in found), default=0)
    for row in found:
        mark = {True: "✓", False: "✗", None: " "}[row.ok]
        text = f"{row.text} ({row.fix})" if row.fix else row.text
        click.echo(f"{mark} {row.title:<{width}}  {text}".rstrip())
