"""Options that say how a model is loaded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--context",
        type=click.IntRange(min=2),
        metavar="N",
        help="Tokens that a conversation may have; default: what the model and the memory allow.",
    ),
    click.option(
        "--no-prompt-correction",
        is_flag=True,
        help="Leave the prompt uncorrected, as in the paper.",
    ),
    click.option(
        "--kv-bits",
        type=click.Choice(["8", "16"]),
        help="Bits of the KV cache on a GPU, default 16: 8 need half the memory. No effect on the CPU.",
    ),
)


def loading_options(command: F) -> F:
    """Add the options to a command, which gives them to `given_loading`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def given_loading(context: int | None, no_prompt_correction: bool, kv_bits: str | None) -> dict[str, Any]:
    """Fields of a `Loading`, those that were asked for."""
    asked = {
        "context": context,
        "prompt_correction": False if no_prompt_correction else None,
        "kv_bits": None if kv_bits is None else int(kv_bits),
    }
    return {name: value for name, value in asked.items() if value is not None}
