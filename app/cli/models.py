"""`pull`, `models`, `rm`, `import`: what is on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from app.cli import work
from app.cli.bases import BASE_OPTIONS, base_options, bases_of
from app.cli.quality import quality_of, quality_options
from app.text import one_line
from runtime.protocol.quality import Quality


@click.command()
@click.argument("model")
@base_options
@quality_options
def pull(model: str, **wish: Any) -> None:
    """Fetch and prepare MODEL: a catalogue name, owner/name of a hub, a folder, or a .gguf file.

    Of a model that is here it makes again what is damaged or missing.
    """
    from app.models import target

    bases = bases_of(**{key: wish.pop(key) for key in BASE_OPTIONS})
    wanted = target(model)
    _prepare(wanted.source, wanted.name, quality_of(**wish), bases)


@click.command(name="import")
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.option("--name", metavar="NAME", help="What to call it here.")
@base_options
@quality_options
def import_(path: Path, name: str | None, **wish: Any) -> None:
    """Prepare a model from a local folder in Hugging Face layout, or from a .gguf file."""
    bases = bases_of(**{key: wish.pop(key) for key in BASE_OPTIONS})
    _prepare(str(path.resolve()), name, quality_of(**wish), bases)


def _prepare(source: str, name: str | None, quality: Quality | None, bases: dict[str, Any]) -> None:
    from runtime.protocol.commands import Prepare

    result = work.run(Prepare(source, name, quality, **bases))
    click.echo(f"{result.get('name', name or source)} is ready, with {', '.join(result['bases'])}.")


@click.command()
@click.option(
    "--catalogue", "known", is_flag=True, help="What `pull` knows by name, instead of what is here."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def models(known: bool, as_json: bool) -> None:
    """List the models that are prepared."""
    from app import format
    from runtime import store
    from runtime.sources import catalogue

    if known:
        _list_catalogue(as_json)
        return
    rows = [_row(record) for record in store.models()]
    default = catalogue.default().name
    if as_json:
        work.print_json({"default": default, "models": rows})
        return
    if not rows:
        click.echo(f"No model is prepared yet. decdec-chat pull {default} fetches the default.")
    for row in rows:
        row["bytes"] = format.size(row["bytes"])
    work.print_table(rows)


def _list_catalogue(as_json: bool) -> None:
    from app import format
    from app.library.rows import offers_of
    from app.surroundings import room
    from runtime import machine
    from runtime.sources import catalogue

    entries = catalogue.load()
    offers = offers_of(entries, room=room(machine.glance()))
    rows: list[dict[str, Any]] = [
        {
            "name": entry.name,
            "download": entry.download_bytes,
            "memory": offer.fit.memory if offer.fit else None,
            "licence": entry.licence,
            "gated": entry.gated,
        }
        for entry, offer in zip(entries, offers, strict=True)
    ]
    if as_json:
        work.print_json({"default": catalogue.default().name, "models": rows})
        return
    for row in rows:
        row |= {key: format.size(row[key] or 0) for key in ("download", "memory")}
        row["gated"] = "needs a token" if row["gated"] else ""
    work.print_table(rows)


def _row(record: Any) -> dict[str, Any]:
    return {key: getattr(record, key) for key in ("name", "state", "bytes", "source", "bits_per_weight")}


@click.command()
@click.argument("model")
def rm(model: str) -> None:
    """Delete a prepared MODEL."""
    from app import format
    from runtime import store

    click.echo(f"{one_line(model)} is deleted, {format.size(store.remove(model))} are free again.")
