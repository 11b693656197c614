"""Pictures that people ask for by file name."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

from runtime.errors import DecdecError
from runtime.store import atomic
from runtime.store.oserrors import translated

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUFFIXES = (".svg", ".png")
DOTS_PER_INCH = 150


def require_suffix(path: Path) -> None:
    """DecdecError unless the file's name says a kind of picture that can be drawn."""
    if path.suffix.lower() not in SUFFIXES:
        raise DecdecError(
            f"{path.name} cannot be drawn", "its name ends in neither .svg nor .png", "choose one of them", 2
        )


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of so many inches, without a window."""
    # Imported here: it takes most of a second that only pictures need.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save(figure: Figure, path: Path) -> None:
    """Write it as its name says, whole or not at all; DecdecError where that fails."""
    with translated(path, f"Drawing {path.name}"):
        # A folder that was mistyped is not made.
        path.parent.stat()
    drawn = io.BytesIO()
    figure.savefig(drawn, format=path.suffix[1:].lower(), dpi=DOTS_PER_INCH)
    atomic.write_bytes(path, drawn.getvalue())
