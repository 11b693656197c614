"""Tests of chat templates (`x is upper`): Jinja's, on values that one step can look at."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from jinja2 import Undefined
from jinja2.tests import TESTS

from runtime.text.template_budget import Budget, refuse

# Jinja writes down or hashes the value. All others of one argument only ask for its kind.
_WALKING = frozenset({"upper", "lower", "filter", "test"})
# Of a text, `value % number` is a text with widths of its own.
_OF_NUMBERS = frozenset({"odd", "even", "divisibleby"})


def bounded_tests(budget: Callable[[], Budget]) -> dict[str, Any]:
    """Tests by name; `budget` gives the one of the rendering that runs."""
    return {name: _bounded(name, test, budget) for name, test in TESTS.items()}


def _bounded(name: str, test: Any, budget: Callable[[], Budget]) -> Callable[..., Any]:
    # Some want the environment first, which is marked on the function.
    first = 1 if hasattr(test, "jinja_pass_arg") else 0

    @functools.wraps(test)
    def bounded(*arguments: Any, **named: Any) -> Any:
        given = [*arguments[first:], *named.values()]
        if len(given) > 1 or name in _WALKING:
            for each in given:
                budget().weigh(each)
        if name in _OF_NUMBERS and not isinstance(given[0], int | float | Undefined):
            refuse(f"only a number can be {name}")
        return test(*arguments, **named)

    return bounded
