"""A step's decoder blocks as a strip that fills block by block."""

from __future__ import annotations

from dataclasses import dataclass

from app.job_progress import TWICE
from runtime.protocol.events import Progress

DONE, HALF, OPEN = "▮", "▪", "▫"


@dataclass(frozen=True, slots=True)
class Strip:
    """Cells from the left: (characters, part) runs with parts "done", "half" and "open".

    A step that goes over the blocks twice fills them by half on its way there, and wholly on its way back.
    """

    runs: tuple[tuple[str, str], ...]
    words: str


def strip(event: Progress, cells: int) -> Strip:
    """At most `cells` wide; each cell is a block where there is room for all, else some of them."""
    passes = 2 if event.step in TWICE else 1
    blocks = max(1, event.total // passes)
    width = min(cells, blocks)
    there, back = min(event.done, blocks), max(0, event.done - blocks)
    if passes == 1:
        full = width * there // blocks
        return Strip(_runs((DONE, full, "done"), (OPEN, width - full, "open")), f"{there} of {blocks} blocks")
    full, half = width * back // blocks, width * there // blocks
    way, count = ("back", back) if back else ("there", there)
    runs = _runs((HALF, half - full, "half"), (OPEN, width - half, "open"), (DONE, full, "done"))
    return Strip(runs, f"{count} of {blocks} blocks, on the way {way}")


def _runs(*runs: tuple[str, int, str]) -> tuple[tuple[str, str], ...]:
    return tuple((char * count, part) for char, count, part in runs if count)
