"""How the commands use the worker, and how they print."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

from app.cli.progress import ProgressPrinter
from app.text import one_line, safe_json
from runtime.protocol.commands import Command, Job
from runtime.protocol.events import Event

if TYPE_CHECKING:
    from runtime.client.blocking import Engine
    from runtime.client.remote import Server


def run(
    commands: Command | Iterable[Command],
    on_event: Callable[[Event], None] | None = None,
    server: Server | None = None,
) -> dict[str, Any]:
    """Run commands in a worker, or by a server, with progress on stderr; the last one's result."""
    from runtime.client import run_job

    printer = ProgressPrinter()

    def forward(event: Event) -> None:
        printer(event)
        if on_event:
            on_event(event)

    try:
        return run_job(commands, forward, None if server is None else _engine(server)).result
    finally:
        printer.close()


def _engine(server: Server) -> Callable[[], Engine]:
    from runtime.client.remote.blocking import RemoteWorker

    return lambda: RemoteWorker(server)


def job(name: str, **args: Any) -> dict[str, Any]:
    """Run a one-shot job of the worker; arguments that are None are left out."""
    return run(Job(name, {key: value for key, value in args.items() if value is not None}))


def print_json(document: Any) -> None:
    """Exactly one JSON document on stdout."""
    click.echo(safe_json(json.dumps(document, ensure_ascii=False, indent=2)))


def print_facts(result: dict[str, Any]) -> None:
    """A result as `name  value` lines."""
    width = max(map(len, result), default=0)
    for key, value in result.items():
        text = one_line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        click.echo(f"{key.replace('_', ' '):<{width}}  {text}")


def print_table(rows: list[dict[str, Any]]) -> None:
    """Rows of equal keys as aligned columns."""
    if not rows:
        return
    lines = [list(rows[0])] + [[_cell(value) for value in row.values()] for row in rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    for line in lines:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else one_line(str(value))
