"""Filters of chat templates: Jinja's, but for those that make much of little in one step."""

from __future__ import annotations

import functools
import json
import re
import string
from collections.abc import Callable, Mapping
from typing import Any

from jinja2.filters import FILTERS

from runtime.text.template_budget import MAX_CHARACTERS, PIECE, Budget, refuse

MAX_WIDTH = 10_000
MAX_INDENT = 64
MAX_COMPARED = 1 << 28
_WIDE = re.compile(r"\d{5}|\*")
# Text for web pages, chance, and layouts; none stands in a chat template, and each would need its own bounds.
_LEFT_OUT = frozenset({
    "attr", "batch", "filesizeformat", "pprint", "random", "slice", "striptags", "sum", "urlize", "wordcount",
    "wordwrap", "xmlattr",
})  # fmt: skip
# These make a text of every character or line of a text, at once.
_TAKING_APART = frozenset(FILTERS[name] for name in ("list", "sort", "join", "groupby", "indent", "title"))


def bounded_filters(budget: Callable[[], Budget]) -> dict[str, Callable[..., Any]]:
    """Filters by name; `budget` gives the one of the rendering that runs."""
    kept = {name: function for name, function in FILTERS.items() if name not in _LEFT_OUT}
    kept["tojson"] = _tojson
    return {name: _bounded(function, _CHECKS.get(name), budget) for name, function in kept.items()}


def check_replace(text: Any, old: Any, new: Any, *_: Any, **__: Any) -> None:
    """Refuses a replacement that grows too long."""
    text, old, new = str(text), str(old), str(new)
    if len(text) + text.count(old) * len(new) > MAX_CHARACTERS:
        refuse("a text is replaced too often")


def check_join(budget: Budget, separator: Any, values: Any) -> None:
    """Refuses a joined text that grows too long."""
    count = len(values) if hasattr(values, "__len__") else 0
    if isinstance(values, str):
        budget.room(count * PIECE)
    if budget.weigh(values) + count * len(str(separator)) > MAX_CHARACTERS:
        refuse("too much is joined")


def check_percent(budget: Budget, text: Any, arguments: Any) -> None:
    """Refuses `text % arguments` where widths or repetitions make it too long."""
    text = str(text)
    if _WIDE.search(text) or text.count("%") * (budget.weigh(arguments) + _width(text)) > MAX_CHARACTERS:
        refuse("a text is formatted to too much")


def check_format(budget: Budget, text: str, arguments: Any) -> None:
    """Refuses `text.format(…)` in the same way, and widths that are arguments themselves."""
    each = budget.weigh(arguments) + _width(text)
    if _WIDE.search(text) or text.count("{") * each > MAX_CHARACTERS:
        refuse("a text is formatted to too much")
    if any("{" in (form or "") for _, _, form, _ in string.Formatter().parse(text)):
        refuse("a width of a format is a value")


def check_search(text: str, arguments: Any) -> None:
    """Refuses a search that takes the product of two long texts."""
    if any(isinstance(each, str) and len(each) * len(text) > MAX_COMPARED for each in arguments):
        refuse("a long text is looked for in a long text")


def check_widths(arguments: Any) -> None:
    """Refuses numbers that are no width of a text."""
    for each in arguments:
        if isinstance(each, int) and abs(each) > MAX_WIDTH:
            refuse(f"a width is {each if abs(each) < 1 << 64 else 'a very large number'}")


def _width(text: str) -> int:
    """Not less than the widest field that a format text can have."""
    digits = next((count for count in (4, 3, 2, 1) if re.search(rf"\d{{{count}}}", text)), 0)
    return int(10**digits)


def _check_center(text: Any, *arguments: Any, **named: Any) -> None:
    check_widths([*arguments, *named.values()])


def _check_indent(text: Any, width: Any = 4, *_: Any, **__: Any) -> None:
    each = len(width) if isinstance(width, str) else width
    if isinstance(each, int) and str(text).count("\n") * max(each, 1) + abs(each) > MAX_CHARACTERS:
        refuse("a text is indented too far")
    check_widths([width])


def _check_round(value: Any, precision: Any = 0, *_: Any, **__: Any) -> None:
    if isinstance(precision, int) and abs(precision) > 100:
        refuse("a number is rounded too finely")


def _check_tojson(value: Any, *arguments: Any, **named: Any) -> None:
    given = [*arguments, *named.values()]
    if any(isinstance(each, int) and each > MAX_INDENT for each in given):
        refuse("an indentation is too wide")
    texts = [part for each in given for part in (each if isinstance(each, list | tuple) else [each])]
    if any(isinstance(each, str) and len(each) > 8 for each in texts):
        refuse("an indentation is too long")


def _check_trim(value: Any, characters: Any = None, *_: Any, **named: Any) -> None:
    check_search(str(value), [characters, *named.values()])


_CHECKS: Mapping[str, Callable[..., None]] = {
    "replace": check_replace, "center": _check_center, "indent": _check_indent, "round": _check_round,
    "tojson": _check_tojson, "trim": _check_trim,
}  # fmt: skip


def _bounded(
    function: Callable[..., Any], check: Callable[..., None] | None, budget: Callable[[], Budget]
) -> Callable[..., Any]:
    # Some want the context or the environment first, which is marked on the function.
    first = 1 if hasattr(function, "jinja_pass_arg") else 0

    @functools.wraps(function)
    def bounded(*arguments: Any, **named: Any) -> Any:
        counting = budget()
        given = [counting.settled(each) for each in arguments[first:]]
        for each in named.values():
            counting.weigh(each)
        if function in _TAKING_APART and isinstance(given[0], str):
            counting.room(len(given[0]) * PIECE)
        if check:
            check(*given, **named)
        if function is FILTERS["join"]:
            check_join(counting, named.get("d", given[1] if len(given) > 1 else ""), given[0])
        if function is FILTERS["format"]:
            check_percent(counting, given[0], named or tuple(given[1:]))
        return counting.made(function(*arguments[:first], *given, **named))

    return bounded


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Plain JSON: jinja2's own filter escapes HTML, which no model was trained on."""
    encoder = json.JSONEncoder(
        ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )
    if indent is None:
        return encoder.encode(value)
    parts, length = [], 0
    for part in encoder.iterencode(value):
        parts.append(part)
        length += len(part)
        if length > MAX_CHARACTERS:
            # Every line repeats the indentation of its depth.
            refuse("an indented value is too long")
    return "".join(parts)
