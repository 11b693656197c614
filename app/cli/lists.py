"""Options whose value is a comma-separated list."""

from __future__ import annotations

from typing import Any

import click


class IntList(click.ParamType):
    """Comma-separated whole numbers."""

    name = "list"

    def convert(
        self, value: str | list[int], param: click.Parameter | None, ctx: click.Context | None
    ) -> list[int]:
        """`0,8,32` as a list."""
        if isinstance(value, list):
            return value
        try:
            numbers = [int(part) for part in value.split(",")]
        except ValueError:
            self.fail(f"{value!r} is not a list of whole numbers such as 0,8,32", param, ctx)
        if any(not 0 <= number <= 1024 for number in numbers):
            self.fail(f"{value!r}: every k_chunk must be within 0..1024", param, ctx)
        return numbers


class WordList(click.ParamType):
    """Comma-separated words, of some choices where there are any; numbers become numbers."""

    name = "list"

    def __init__(self, *choices: str) -> None:
        self.choices = choices

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[Any]:
        """`bucket,exact` or `4,exact` as a list."""
        if isinstance(value, list):
            return value
        words = [word.strip() for word in str(value).split(",")]
        for word in words:
            if self.choices and word not in self.choices:
                self.fail(f"{word!r} is not one of {', '.join(self.choices)}", param, ctx)
        return [int(word) if word.isdigit() else word for word in words]


class NumberList(click.ParamType):
    """Comma-separated numbers."""

    name = "list"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[float]:
        """`3,3.5` as a list."""
        if isinstance(value, list):
            return value
        try:
            return [float(part) for part in str(value).split(",")]
        except ValueError:
            self.fail(f"{value!r} is not a list of numbers such as 3,3.5", param, ctx)
