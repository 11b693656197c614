"""`run`: one answer for scripts and pipes; and the chat's stand-in where there is no terminal."""

from __future__ import annotations

import signal
import sys
from collections.abc import Mapping
from typing import Any

import click

from app.cli import work
from app.cli.bases import answering_base
from app.cli.loading import given_loading, loading_options
from app.cli.remote import REMOTE_OPTIONS, Remote, given_remote, remote_options
from app.cli.safe_stream import for_an_answer
from app.cli.slowdown import Slowdown, usual_pct
from runtime.protocol.bases import DEFAULT
from runtime.protocol.commands import LOSSLESS

SLOWDOWN_HELP = "Slider, 0 to 20; default: where the chat's slider was left."


@click.command()
@click.option("-m", "--model", metavar="MODEL", help="A prepared model, or anything `pull` takes.")
@click.option("--slowdown", type=Slowdown(), metavar="PCT", help=SLOWDOWN_HELP)
@answering_base(default=DEFAULT.name, show_default=True)
@loading_options
@remote_options
@click.option("--max-tokens", type=click.IntRange(min=1), metavar="N", help="End the answer after N tokens.")
@click.option("--temperature", type=click.FloatRange(0, 100), metavar="T", help="0 is greedy.")
@click.option("--seed", type=int, metavar="N", help="Makes sampling repeatable.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document instead of text.")
@click.argument("prompt", required=False)
@click.pass_context
def run(
    ctx: click.Context,
    model: str | None,
    slowdown: float | None,
    base: str,
    max_tokens: int | None,
    temperature: float | None,
    seed: int | None,
    as_json: bool,
    prompt: str | None,
    **others: Any,
) -> int:
    """Answer PROMPT, or what comes on stdin, or both."""
    from app.cli.answer import Answer
    from app.loading import Loading
    from app.models import target
    from runtime.protocol.commands import Sampling

    remote = given_remote(ctx, **{name: others.pop(name) for name in REMOTE_OPTIONS})
    text = read_prompt(prompt)
    result = Answer(
        remote.target if remote else target(model),
        text,
        Sampling(temperature=temperature, seed=seed),
        max_tokens,
        slowdown,
        tune=bool(slowdown) and base != LOSSLESS,
        base=base,
        loading=Loading(**given_loading(**others)),
        out=None if as_json else for_an_answer(),
        remote=remote,
        usual_pct=usual_pct(),
    ).run()
    if as_json:
        work.print_json({key: result[key] for key in KEYS if key in result})
    return _exit_code(result.get("finish_reason", ""))


# What `run --json` promises, in this order.
KEYS = (
    "text",
    "model",
    "device",
    "finish_reason",
    "prompt_tokens",
    "completion_tokens",
    "prefill_s",
    "decode_tokens_per_s",
    "slowdown_target_pct",
    "slowdown_measured_pct",
    "k_chunk",
)


def answer_stdin(given: Mapping[str, Any], remote: Remote | None = None) -> int:
    """What `decdec-chat` does without a terminal: the answer to what comes on stdin.

    Every default holds but for the fields of a `Loading` that were given, and a server in the engine's place.
    """
    from app.cli.answer import Answer
    from app.loading import Loading
    from app.models import target

    loading = Loading(**given)
    answer = Answer(
        remote.target if remote else target(None),
        read_prompt(None),
        tune=loading.base != LOSSLESS,
        base=loading.base or DEFAULT.name,
        loading=loading,
        out=for_an_answer(),
        remote=remote,
        usual_pct=usual_pct(),
    )
    result = answer.run()
    return _exit_code(result.get("finish_reason", ""))


def read_prompt(argument: str | None) -> str:
    """The argument, stdin, or both with a blank line between; raises a usage error when there is neither."""
    parts = [argument] if argument else []
    if not sys.stdin.isatty():
        parts.append(sys.stdin.buffer.read().decode("utf-8", "replace").strip())
    text = "\n\n".join(part for part in parts if part)
    if not text.strip():
        raise click.UsageError("There is nothing to answer: give a PROMPT or pipe one in.")
    return text


def _exit_code(finish_reason: str) -> int:
    return 128 + signal.SIGINT if finish_reason == "stopped" else 0
