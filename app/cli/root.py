"""The command `decdec-chat` and everything below it."""

from __future__ import annotations

import sys
from typing import Any

import click

from app.cli.bench import bench
from app.cli.doctor import doctor
from app.cli.evaluate import evaluate
from app.cli.int8x import int8x
from app.cli.loading import given_loading, loading_options
from app.cli.models import import_, models, pull, rm
from app.cli.run import answer_stdin, run
from app.cli.serve import serve
from app.cli.tune import tune


@click.group(invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="decdec-chat", message="%(version)s")
@loading_options
@click.pass_context
def cli(ctx: click.Context, **loading: Any) -> int | None:
    """Chat with a model too good for this machine: low-bit weights, corrected from host memory.

    Without a command: the chat. Without a terminal on stdin: answers what comes on stdin and exits.

    Everything is kept below DECDEC_HOME; DECDEC_DEVICE chooses cpu, cuda or cuda:N. What an option says holds
    for this chat; settings.json there may give context, prompt_correction and kv_bits for every chat.
    """
    given = given_loading(**loading)
    if ctx.invoked_subcommand is not None:
        if given:
            raise click.UsageError("Options for loading go behind the command: decdec-chat run --context N …")
        return None
    if not sys.stdin.isatty():
        return answer_stdin(given)
    from app.chat.app import ChatApp

    chat = ChatApp(given)
    chat.run()
    return chat.return_code


for command in (run, serve, pull, models, rm, import_, tune, int8x, evaluate, bench, doctor):
    cli.add_command(command)
