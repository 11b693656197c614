"""Colour themes as data: assets/themes/*.json."""

from __future__ import annotations

import importlib.resources
import json

from textual.theme import Theme


def load() -> list[Theme]:
    """Every theme of the assets; the keys of a file are Textual's theme fields."""
    folder = importlib.resources.files("assets").joinpath("themes")
    files = sorted((f for f in folder.iterdir() if f.name.endswith(".json")), key=lambda f: f.name)
    return [Theme(**json.loads(f.read_text(encoding="utf-8"))) for f in files]
