"""Options that put a server in the local engine's place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

if TYPE_CHECKING:
    from app.models import Target
    from runtime.client.remote import Server

F = TypeVar("F", bound=Callable[..., Any])

REMOTE_OPTIONS = ("server", "server_model", "api_key_env")
DEFAULT_KEY_VARIABLE = "OPENAI_API_KEY"
_LOCAL = ("model", "slowdown", "base", "context", "no_prompt_correction", "kv_bits")

_OPTIONS = (
    click.option(
        "--server",
        metavar="URL",
        help="Let a server answer that speaks OpenAI's API: vLLM, llama.cpp, Ollama, LM Studio, a hosted"
        " one, or decdec-chat serve.",
    ),
    click.option(
        "--server-model",
        metavar="NAME",
        help="The server's name of the model; default: the one that it offers first.",
    ),
    click.option(
        "--api-key-env",
        metavar="NAME",
        is_flag=False,
        flag_value=DEFAULT_KEY_VARIABLE,
        help=f"The environment variable with the server's API key; {DEFAULT_KEY_VARIABLE} without a NAME.",
    ),
)


@dataclass(frozen=True, slots=True)
class Remote:
    """A server, and its name of the model; empty: the one that it offers first."""

    server: Server
    model: str

    @property
    def target(self) -> Target:
        """The model as one that needs no preparation."""
        from app.models import Target

        return Target(self.model, self.model, True)


def remote_options(command: F) -> F:
    """Add the options to a command, which gives them to `given_remote`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def given_remote(
    ctx: click.Context, server: str | None, server_model: str | None, api_key_env: str | None
) -> Remote | None:
    """The server that was asked for; a usage error where options contradict each other."""
    if server is None:
        alone = "--server-model" if server_model else "--api-key-env" if api_key_env else ""
        if alone:
            raise click.UsageError(f"{alone} needs --server URL")
        return None
    _refuse_local(ctx)
    from runtime.client.remote import Server

    return Remote(Server.of(server, api_key_env), (server_model or "").strip())


def _refuse_local(ctx: click.Context) -> None:
    """Options that a server would not obey are refused, not ignored."""
    for parameter in ctx.command.params:
        name = parameter.name or ""
        if name in _LOCAL and ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            instead = "; --server-model names the server's" if name == "model" else ""
            option = max(parameter.opts, key=len)
            raise click.UsageError(f"{option} belongs to the local engine, not to a --server{instead}")
