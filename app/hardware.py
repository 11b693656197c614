"""The doctor's findings as rows for people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from app import format
from app.text import one_line


@dataclass(frozen=True, slots=True)
class Row:
    """A fact; `ok` is None for one that is neither good nor bad. `fix`: what to do about a bad one."""

    title: str
    text: str
    ok: bool | None = None
    fix: str = ""


# A group with more facts than this gets a row for each.
MAX_IN_ROW = 3
_UNITS = {"_bytes": format.size, "_gb_s": lambda value: f"{value:.3g} GB/s"}


def rows(report: dict[str, Any]) -> list[Row]:
    """Every fact of a doctor's report, in its order; unknown shapes are shown as they are."""
    return [row for key, value in report.items() for row in _rows(key, value)]


def _rows(key: str, value: Any) -> list[Row]:
    if isinstance(value, dict):
        known = {_title(k): _scalar(k, v) for k, v in value.items() if v is not None}
        if len(known) > MAX_IN_ROW:
            return [Row(f"{_title(key)}: {title}", text) for title, text in known.items()]
        return [Row(_title(key), ", ".join(f"{title} {text}" for title, text in known.items()))]
    if isinstance(value, list):
        return [item(key, each) for each in value]
    return [Row(_title(key), _scalar(key, value))] if value not in (None, "") else []


def item(key: str, value: Any) -> Row:
    """One entry of a list: a device or a check, with its verdict if it has one."""
    if not isinstance(value, dict):
        return Row(_title(key), one_line(str(value)))
    rest = dict(value)
    title = str(rest.pop("name", _title(key)))
    rest.pop("kind", None)
    fix = one_line(str(rest.pop("fix", "")))
    ok = next((rest.pop(flag) for flag in ("usable", "ok") if isinstance(rest.get(flag), bool)), None)
    parts = [
        _scalar(k, v) if isinstance(v, str) else f"{_title(k)} {_scalar(k, v)}" for k, v in rest.items() if v
    ]
    return Row(one_line(title), ", ".join(parts), ok, fix)


def _scalar(key: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    for ending, in_words in _UNITS.items():
        if key.endswith(ending) and isinstance(value, int | float):
            return in_words(value)
    return one_line(str(value))


def _title(key: str) -> str:
    for ending in _UNITS:
        key = key.removesuffix(ending)
    return one_line(key.replace("_", " "))
