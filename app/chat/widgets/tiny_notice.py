"""Shown instead of everything when the terminal is too small."""

from __future__ import annotations

from textual.widgets import Static


class TinyNotice(Static):
    """Says what is needed."""

    def __init__(self) -> None:
        super().__init__("Too small:\n30×8 needed", id="tiny-notice")
