"""Colour themes as data: assets/themes/*.json."""

from __future__ import annotations

import importlib.resources
import json
from collections.abc import Iterable

from textual.theme import Theme

# The order in which "next theme" goes through them; Textual's own come by name.
ROUND = ("decdec-dark", "decdec-light", "decdec-contrast", "ansi-dark", "ansi-light")


def load() -> list[Theme]:
    """Every theme of the assets; the keys of a file are Textual's theme fields."""
    folder = importlib.resources.files("assets").joinpath("themes")
    files = sorted((f for f in folder.iterdir() if f.name.endswith(".json")), key=lambda f: f.name)
    return [Theme(**json.loads(f.read_text(encoding="utf-8"))) for f in files]


def ordered(available: Iterable[str]) -> list[str]:
    """Names for a list: the project's own and the terminal's first."""
    names = set(available)
    return [name for name in ROUND if name in names] + sorted(names - set(ROUND))


def following(name: str, available: Iterable[str]) -> str:
    """The next theme of the round."""
    names = [each for each in ROUND if each in set(available)]
    return names[(names.index(name) + 1) % len(names)] if name in names else names[0]


def meant(text: str, available: Iterable[str]) -> str:
    """The one theme whose name is, begins with or contains a text; empty where none or several do."""
    names, text = list(available), text.strip().lower()
    for fits in (text.__eq__, lambda name: name.startswith(text), lambda name: text in name):
        found = [name for name in names if fits(name)]
        if len(found) == 1:
            return found[0]
    return ""
