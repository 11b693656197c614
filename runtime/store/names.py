"""Names of models: safe as a folder name on every platform, and forgiving when looked up."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

from runtime.errors import DecdecError

MAX_LENGTH = 96
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
_NEAR = 0.6


def slug(text: str) -> str:
    """A safe folder name from any text: "owner/name" becomes "owner--name", odd characters "-".

    Raises DecdecError when nothing usable is left.
    """
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", text.replace("/", "--"))
    name = plain.lstrip("-._")[:MAX_LENGTH].rstrip("-._")
    if not name or _RESERVED.fullmatch(name):
        raise DecdecError(
            f"{text!r} cannot be the name of a model", "", "use letters, digits, '.', '_' and '-'"
        )
    return name


def checked(name: str) -> str:
    """The name itself if it is a safe one; raises DecdecError otherwise."""
    if slug(name) != name:
        raise DecdecError(
            f"{name!r} cannot be the name of a model",
            "",
            f"use letters, digits, '.', '_' and '-': {slug(name)}",
        )
    return name


def near(name: str, known: Iterable[str], count: int = 3) -> list[str]:
    """Up to `count` known names that look like `name`, the best first; a likeness to a beginning counts."""
    scores = {other: _likeness(name.lower(), other.lower()) for other in known}
    best = sorted(scores, key=lambda other: -scores[other])[:count]
    return [other for other in best if scores[other] >= _NEAR]


def offer(names: list[str]) -> str:
    """A fix that offers near names, empty when there are none."""
    return f"try {' or '.join(names)}" if names else ""


def _likeness(name: str, other: str) -> float:
    last = name.rpartition("/")[2]
    pairs = ((last, other), (last, other[: len(last)]))
    return max(difflib.SequenceMatcher(None, a, b).ratio() for a, b in pairs)
