"""The command `decdec-chat` and everything below it."""

from __future__ import annotations

import sys
from typing import Any

import click

from app import environment
from app.cli.bases import answering_base
from app.cli.bench import bench
from app.cli.chats import chats
from app.cli.doctor import doctor
from app.cli.evaluate import evaluate
from app.cli.export import export
from app.cli.int8x import int8x
from app.cli.loading import given_loading, loading_options
from app.cli.models import import_, models, pull, rm
from app.cli.remote import REMOTE_OPTIONS, Remote, given_remote, remote_options
from app.cli.run import answer_stdin, run
from app.cli.serve import serve
from app.cli.settings import settings
from app.cli.tune import tune
from runtime.errors import DecdecError

# Commands that help where the folder of the models is not there.
WITHOUT_MODELS = ("settings", "chats")


@click.group(invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="decdec-chat", message="%(version)s")
@answering_base()
@loading_options
@remote_options
@click.pass_context
def cli(ctx: click.Context, base: str | None, **options: Any) -> int | None:
    """Chat with a model too good for this machine: low-bit weights, corrected from host memory.

    Without a command: the chat. Without a terminal on stdin: answers what comes on stdin and exits.

    Everything is kept below DECDEC_HOME; DECDEC_DEVICE chooses cpu, cuda or cuda:N. What an option says holds
    for this chat; `decdec-chat settings` shows what holds for every chat, and where it is kept.
    """
    server = {name: options.pop(name) for name in REMOTE_OPTIONS}
    given = given_loading(**options) | ({"base": base} if base else {})
    if ctx.invoked_subcommand not in WITHOUT_MODELS and not any(server.values()):
        environment.require_models_folder()
    if ctx.invoked_subcommand is not None:
        if given or any(server.values()):
            raise click.UsageError("Options of the chat go behind the command: decdec-chat run --context N …")
        return None
    remote = given_remote(ctx, **server)
    if not sys.stdin.isatty():
        return answer_stdin(given, remote)
    if not sys.stderr.isatty():
        raise DecdecError("The chat cannot be drawn", "stderr is no terminal", "do not redirect it")
    from app.chat.app import ChatApp

    chat = ChatApp(given, **_in_its_place(remote))
    chat.run()
    return chat.return_code


def _in_its_place(remote: Remote | None) -> dict[str, Any]:
    """What the chat is told about a server that answers instead of the local engine."""
    if remote is None:
        return {}
    from runtime.client.remote import RemoteClient

    return {"client": RemoteClient(remote.server), "model": remote.model}


for command in (
    run,
    serve,
    pull,
    models,
    rm,
    import_,
    tune,
    int8x,
    export,
    evaluate,
    bench,
    doctor,
    settings,
    chats,
):
    cli.add_command(command)
