"""What is said below two answers that are compared."""

from __future__ import annotations

from app.comparison import Comparison

# The sides, by their number.
NAMES = "AB"
HELP = "Enter compares · Tab and arrows move a position · both have the same seed"
SAME = "Both answers are the same, letter for letter"
PARTED = "They part at the marked word"
STOPPED = "Stopped · Enter writes it again"


def state(comparison: Comparison) -> str:
    """What goes on, what was found, and which key keeps what."""
    if comparison.running and comparison.stopping:
        return "Stopping…"
    if not comparison.running and not comparison.keepable:
        return HELP
    return " · ".join(filter(None, (_found(comparison), _keeps(comparison))))


def _found(comparison: Comparison) -> str:
    if running := comparison.running:
        return f"{NAMES[comparison.sides.index(running.position)]} is being written · Esc stops"
    if comparison.stopped:
        return STOPPED
    if comparison.same:
        return SAME
    return "" if comparison.difference is None else PARTED


def _keeps(comparison: Comparison) -> str:
    sides = [NAMES[side] for side in comparison.keepable]
    both = len(sides) > 1
    kept = "a or b keeps one" if both else "".join(f"{name.lower()} keeps {name}" for name in sides)
    place = "as a variant of the last question" if comparison.variant else "as a new question"
    return f"{kept} {place}" if sides else ""
