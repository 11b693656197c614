"""Options that say where the slider stands."""

from __future__ import annotations

from typing import Any

import click

from runtime.protocol.commands import LOSSLESS as INT8
from runtime.protocol.commands import MAX_SLOWDOWN_PCT


class Slowdown(click.FloatRange):
    """0 to 20 percent; whoever asks for lossless is told the way to it."""

    def __init__(self) -> None:
        super().__init__(0, MAX_SLOWDOWN_PCT)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number."""
        if str(value).strip().lower() == "lossless":
            self.fail(f"{value} is no slowdown: --base {INT8} is lossless", param, ctx)
        return super().convert(value, param, ctx)


def usual_pct() -> float:
    """Where the chat's slider was left, in percent; the default where it was never moved."""
    from app import settings_file

    return settings_file.load()[0].slowdown_pct
