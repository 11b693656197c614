"""Methods of texts and containers that a chat template may call, and what they cost, looked at first."""

from __future__ import annotations

from typing import Any

from runtime.text.template_budget import MAX_CHARACTERS, PIECE, Budget, refuse
from runtime.text.template_filters import check_join, check_replace, check_search, check_widths

OF_CONTAINERS = frozenset({"index", "count", "get", "items", "keys", "values", "copy"})
OF_TEXT = frozenset({
    "strip", "lstrip", "rstrip", "split", "rsplit", "splitlines", "partition", "rpartition", "startswith",
    "endswith", "removeprefix", "removesuffix", "replace", "upper", "lower", "title", "capitalize",
    "swapcase", "casefold", "join", "find", "rfind", "index", "rindex", "count", "isalnum", "isalpha",
    "isascii", "isdecimal", "isdigit", "isidentifier", "islower", "isnumeric", "isprintable", "isspace",
    "istitle", "isupper", "center", "ljust", "rjust", "zfill", "expandtabs",
})  # fmt: skip
_WIDENING = frozenset({"center", "ljust", "rjust", "zfill", "expandtabs"})
# Python's search from the end and its stripping take the product of both lengths.
_SEARCHING = frozenset({"strip", "lstrip", "rstrip", "rfind", "rindex", "rpartition", "rsplit"})
_SPLITTING = frozenset({"split", "rsplit", "splitlines"})
# Each pair may have the same hash as all before it, which are then compared one by one.
_MAX_PAIRS = 4096


def check_method(budget: Budget, function: Any, arguments: tuple[Any, ...]) -> None:
    """Refuses a method whose one step takes too long or makes too much."""
    owner, name = getattr(function, "__self__", None), getattr(function, "__name__", "")
    if isinstance(owner, str):
        _check_method_of_text(budget, owner, name, arguments)
    elif isinstance(owner, list | tuple) and name in ("index", "count"):
        # Every part is compared, and what stands in it many times is walked over as often.
        budget.weigh(owner)


def check_pairs(values: Any) -> None:
    """Refuses what makes too large a dictionary of pairs."""
    if not isinstance(values, dict) and hasattr(values, "__len__") and len(values) > _MAX_PAIRS:
        refuse("a dictionary is made of too many pairs")


def _check_method_of_text(budget: Budget, text: str, name: str, arguments: tuple[Any, ...]) -> None:
    if name == "join" and arguments:
        check_join(budget, text, arguments[0])
    elif name == "replace" and len(arguments) > 1:
        check_replace(text, *arguments)
    elif name in _WIDENING:
        check_widths(arguments)
    if name == "expandtabs":
        width = max((abs(each) for each in arguments if isinstance(each, int)), default=8)
        if text.count("\t") * width > MAX_CHARACTERS:
            refuse("too many tabs are expanded")
    if name in _SEARCHING:
        check_search(text, arguments)
    if name in _SPLITTING:
        budget.room(len(text) // 2 * PIECE)
