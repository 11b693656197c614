"""Alt with a digit, in terminals that do not speak the kitty keyboard protocol."""

from __future__ import annotations

from typing import Any, cast

from textual import _ansi_sequences


def tell_alt_digits_apart() -> None:
    """Let Escape and a digit in one go mean Alt and that digit, as for letters.

    Textual takes them for the characters that a Mac's Option key types, because one terminal there sends
    them so; everywhere else Alt+4 would write a cent sign.
    """
    sequences = cast("dict[str, Any]", _ansi_sequences.ANSI_SEQUENCES_KEYS)
    for digit in range(10):
        sequences.pop(f"\x1b{digit}", None)
