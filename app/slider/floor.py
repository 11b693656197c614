"""What a person says about auto's floor."""

from __future__ import annotations

import math

from app.slider.auto import Auto
from app.text import one_line
from runtime.errors import DecdecError

# Faster than most people read.
DEFAULT_FLOOR = 10.0
MAX_FLOOR = 10_000.0
_OFF = ("off", "no", "stop")


def wanted_floor(text: str, auto: Auto) -> float:
    """Tokens/s to keep; 0 or less: off. Without text auto is switched, with the floor it had.

    Raises DecdecError for what is no speed.
    """
    if not text.strip():
        return 0.0 if auto.on else auto.floor or DEFAULT_FLOOR
    word = text.split()[0].lower().replace(",", ".")
    if word in _OFF:
        return 0.0
    try:
        floor = float(word)
    except ValueError:
        floor = math.nan
    if not floor <= MAX_FLOOR:
        raise DecdecError(f"“{one_line(text)}” is no speed", "", "/auto 20 keeps 20 tokens per second")
    return floor
