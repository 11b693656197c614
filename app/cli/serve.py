"""`serve`: the chat's engine behind an OpenAI-compatible HTTP server."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from app.cli import work
from app.cli.bases import answering_base
from app.cli.loading import given_loading, loading_options
from app.cli.progress import ProgressPrinter
from app.cli.slowdown import Slowdown, usual_pct
from app.text import one_line
from runtime.errors import DecdecError
from runtime.protocol.bases import DEFAULT
from runtime.protocol.commands import LOSSLESS
from runtime.protocol.events import Event, Failed, Loaded

if TYPE_CHECKING:
    from app.models import Target
    from runtime.server import Access, Settings

DEFAULT_PORT = 8484
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@click.command()
@click.option("-m", "--model", metavar="MODEL", help="A prepared model, or anything `pull` takes.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to answer at.")
@click.option("--port", type=click.IntRange(0, 65535), default=DEFAULT_PORT, show_default=True, metavar="N")
@click.option(
    "--api-key-env", metavar="NAME", help="The environment variable with the key clients must send."
)
@click.option(
    "--api-key-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Or the file whose first line it is.",
)
@click.option(
    "--insecure-no-key", is_flag=True, help="Let other machines ask without a key, where --host lets them."
)
@click.option(
    "--allow-origin",
    multiple=True,
    metavar="ORIGIN",
    help="Let web pages of this origin ask, as http://localhost:3000; may be given several times, * is any.",
)
@click.option(
    "--slowdown",
    type=Slowdown(),
    metavar="PCT",
    help="Slider, 0 to 20, where a request does not say; default: where the chat's slider was left.",
)
@answering_base(default=DEFAULT.name, show_default=True)
@loading_options
def serve(
    model: str | None,
    host: str,
    port: int,
    api_key_env: str | None,
    api_key_file: Path | None,
    insecure_no_key: bool,
    allow_origin: tuple[str, ...],
    slowdown: float | None,
    base: str,
    **loading: Any,
) -> None:
    """Answer programs by HTTP as OpenAI's API does: /v1/chat/completions, /v1/models, /health."""
    from app.loading import Loading
    from app.models import target
    from runtime.server import Settings, bind

    key = _key(api_key_env, api_key_file)
    how = Loading(**given_loading(**loading))
    with contextlib.closing(bind(host, port)) as bound:
        access = _access(host, bound, key, insecure_no_key, allow_origin)
        name = _prepared(target(model), base)
        pct = usual_pct() if slowdown is None else slowdown
        _serve(Settings(how.command(name, base), pct, bool(slowdown), access), bound, host)


def _key(variable: str | None, file: Path | None) -> str:
    """The API key that clients must bring; empty where none was asked for."""
    if variable and file:
        raise click.UsageError("give one of --api-key-env and --api-key-file")
    if variable:
        # A key given in the place of a name must not be repeated on the screen.
        if not VARIABLE.fullmatch(variable):
            raise DecdecError(
                "--api-key-env is no name of a variable", "", "give the variable's name", code=2
            )
        # The engine's process has no need of it.
        key, where = os.environ.pop(variable, "").strip(), f"the variable {variable} is not set"
    elif file:
        lines = file.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        key, where = lines[0].strip() if lines else "", f"{file} is empty"
    else:
        return ""
    if not key:
        raise DecdecError("There is no API key", where, code=2)
    return key


def _access(host: str, bound: socket.socket, key: str, insecure: bool, origins: tuple[str, ...]) -> Access:
    """Who may ask; DecdecError for a server that would answer anyone who reaches it."""
    from runtime.server import Access, is_loopback

    allowed = frozenset(origin.rstrip("/") for origin in origins)
    if is_loopback(bound):
        return Access(key, allowed, frozenset({host.lower()}))
    if not key and not insecure:
        raise DecdecError(
            f"{host} can be reached from other machines",
            "there is no API key",
            "give --api-key-env or --api-key-file, or --insecure-no-key to answer anyone",
            code=2,
        )
    return Access(key, allowed, None)


def _prepared(wanted: Target, base: str) -> str:
    """The name of the model, which is fetched and prepared first where it or its base is missing."""
    from runtime import device
    from runtime.protocol.commands import Prepare

    device.require_wanted()
    if wanted.has(base):
        return wanted.name
    bases = (DEFAULT.name,) if base == LOSSLESS else (base,)
    print(wanted.lack(base), file=sys.stderr)
    result = work.run(Prepare(wanted.source, wanted.name, bases=bases))
    return str(result.get("name", wanted.name))


def _serve(settings: Settings, bound: socket.socket, host: str) -> None:
    import asyncio

    console = Console()
    try:
        asyncio.run(_answer(settings, bound, host, console))
    finally:
        console.close()


async def _answer(settings: Settings, bound: socket.socket, host: str, console: Console) -> None:
    from runtime.server import Service, url_of

    async with Service(settings, bound, console) as service:
        loaded = await service.load()
        console.say(_slider_note(loaded, settings.slowdown_pct))
        console.say(f"Serving {loaded.model} at {url_of(host, bound)}")
        await service.run()


def _slider_note(loaded: Loaded, pct: float) -> str:
    if loaded.base == LOSSLESS:
        return "Answers are lossless: there is no slider."
    if loaded.path:
        return f"Answers take the slider at {pct:g} % unless they say slowdown_pct."
    reason = loaded.untuned_reason.rstrip(".") or "this model is not tuned"
    return f"The slider is off: {reason}."


class Console:
    """What happens, on stderr: progress, notes of loaded models, and ends of the engine."""

    def __init__(self) -> None:
        self._progress = ProgressPrinter()
        self._noted = ""

    def __call__(self, event: Event) -> None:
        """Take any event. A terminal that is gone ends no answer."""
        with contextlib.suppress(OSError, ValueError):
            self._progress(event)
        if isinstance(event, Loaded) and event.note not in ("", self._noted):
            self._noted = event.note
            self.say(event.note)
        if isinstance(event, Failed) and event.job == "worker":
            self.say(f"{DecdecError(event.what, event.why).sentence} It is started again.")

    def say(self, sentence: str) -> None:
        """One line."""
        with contextlib.suppress(OSError, ValueError):
            self._progress.close()
            print(one_line(sentence), file=sys.stderr, flush=True)

    def close(self) -> None:
        """End a line that is still being rewritten."""
        with contextlib.suppress(OSError, ValueError):
            self._progress.close()
