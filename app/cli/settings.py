"""`settings`: what is set, where that is kept, and what goes before it."""

from __future__ import annotations

from typing import Any

import click

from app.cli import work
from app.text import one_line


@click.command()
@click.option("--edit", is_flag=True, help="Open the file in your editor (VISUAL, EDITOR).")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def settings(edit: bool, as_json: bool) -> None:
    """Show every setting and the file that keeps them."""
    from app import settings_file
    from runtime import locations

    path = locations.settings_file()
    if edit:
        settings_file.begin()
        click.edit(filename=str(path))
    found, problem = settings_file.load()
    if problem:
        click.echo(one_line(problem), err=True)
    if as_json:
        import msgspec

        values = {option.name: msgspec.to_builtins(option.value(found)) for option in settings_file.OPTIONS}
        work.print_json({"path": str(path), "settings": values})
        return
    click.echo(f"{path}{'' if path.exists() else ' (not there yet: everything is as usual)'}")
    work.print_table([_row(option, found) for option in settings_file.OPTIONS])


def _row(option: Any, found: Any) -> dict[str, str]:
    from app import environment

    value = option.value(found)
    shown = option.kind.shown(value) if option.kind else "" if value in (None, "", (), {}) else str(value)
    if option.name in environment.VARIABLES and (given := environment.decides(option.name)):
        shown = f"{given}, by {environment.VARIABLES[option.name]}"
    return {"name": option.name, "value": one_line(shown), "set": "" if value == option.usual else "here"}
