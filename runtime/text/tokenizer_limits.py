"""What a tokenizer.json may ask for: real ones stay far below, a hostile one is refused before it runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

# Normalisers put one mark for one space; "``" for a quotation mark is the most that is in use.
MAX_GROWTH = 64
MAX_ADDED = 1 << 16
# Looking for every added token in the template.
MAX_SEARCHED = 1 << 30
MAX_STEPS = 64


def check_added(added: list[dict[str, Any]], template: str) -> None:
    """ValueError for more added tokens than can be looked for in texts in a moment."""
    if len(added) > MAX_ADDED:
        raise ValueError(f"it adds {len(added)} tokens")
    if len(added) * len(template) > MAX_SEARCHED:
        raise ValueError(
            f"{len(added)} added tokens are too many for a template of {len(template)} characters"
        )


def check_normaliser(normaliser: Any) -> None:
    """ValueError for replacements that make much out of little, or replace nothing at all."""
    growth = 1.0
    for count, step in enumerate(_steps(normaliser)):
        if count >= MAX_STEPS:
            raise ValueError(f"it normalises in over {MAX_STEPS} steps")
        growth *= _growth(step)
        if growth > MAX_GROWTH:
            raise ValueError(f"its normaliser makes a text over {MAX_GROWTH} times longer")


def _steps(normaliser: Any) -> Iterator[dict[str, Any]]:
    if not isinstance(normaliser, dict):
        return
    inner = normaliser.get("normalizers")
    if not isinstance(inner, list):
        yield normaliser
        return
    for step in inner:
        yield from _steps(step)


def _growth(step: dict[str, Any]) -> float:
    content, pattern = step.get("content", ""), step.get("pattern")
    if step.get("type") == "Prepend":
        return 1.0 if len(str(step.get("prepend", ""))) <= MAX_GROWTH else float("inf")
    if step.get("type") != "Replace" or not isinstance(content, str) or not isinstance(pattern, dict):
        return 1.0
    replaced = pattern.get("String")
    if replaced == "" or pattern.get("Regex") == "":
        raise ValueError("its normaliser replaces an empty text")
    return max(1.0, len(content) / (len(replaced) if isinstance(replaced, str) else 1))
