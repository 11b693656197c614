"""Pictures of the tables, as SVG."""

from __future__ import annotations

import io
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from runtime.bench.table import Row, Table
from runtime.store import atomic

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PARTS = ("flags", "data", "tables", "scales")


def draw_sizes(table: Table, path: Path) -> None:
    """Bits per weight in table 2.3 by part, a bar for each codec and source of weights, with the entropy."""
    rows = [row for row in reversed(table.rows) if row["data"] is not None]
    entropy = {row["weights"]: row["total"] for row in table.rows if row["codec"] == "entropy"}
    labels, left = [f"{row['weights']}: {row['codec']}" for row in rows], [0.0] * len(rows)
    figure = blank(9.5, 1.2 + 0.3 * len(rows))
    axes = figure.subplots()
    for part in _PARTS:
        values = [row[part] for row in rows]
        axes.barh(labels, values, left=left, label=part)
        left = [low + value for low, value in zip(left, values, strict=True)]
    floors = [entropy[row["weights"]] for row in rows]
    axes.scatter(floors, labels, marker="|", s=120, color="black", zorder=3, label="entropy")
    for label, total in zip(labels, left, strict=True):
        axes.annotate(
            f" {total:.2f}", (max(total, entropy[label.split(": ")[0]]), label), va="center", fontsize=8
        )
    axes.set(xlabel="bit/w", xlim=(0, 9), title=table.title)
    axes.tick_params(axis="y", labelsize=8)
    figure.legend(loc="outside lower center", ncols=5, fontsize=8)
    save(figure, path)


def draw_sweep(table: Table, path: Path) -> None:
    """Table 4.2: total bits per weight against the first level, with the paper's line."""
    panels = _by_weights(table.rows)
    figure = blank(6.5, 4.6)
    axes = figure.subplots()
    for name, rows in panels.items():
        axes.plot(
            [row["first level"] for row in rows], [row["total"] for row in rows], marker="o", label=name
        )
    paper = next(iter(panels.values()))
    first, totals = [row["first level"] for row in paper], [row["paper total"] for row in paper]
    axes.plot(first, totals, marker="s", color="black", linestyle="--", label="paper, MiniCPM5-1B")
    axes.set(xlabel="bits of the first level", ylabel="bit/w", xticks=first, title=table.title)
    axes.grid(alpha=0.25)
    axes.legend(fontsize=8)
    save(figure, path)


def _by_weights(rows: Iterable[Row]) -> dict[str, list[Row]]:
    panels: dict[str, list[Row]] = {}
    for row in rows:
        panels.setdefault(row["weights"], []).append(row)
    return panels


def blank(width: float, height: float) -> Figure:
    """An empty figure of so many inches, drawn without a screen."""
    # Imported here: it takes most of a second that only pictures need.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save(figure: Figure, path: Path) -> None:
    """Write a figure as its name's ending says, whole or not at all. Raises DecdecError for a full disk."""
    drawn = io.BytesIO()
    figure.savefig(drawn, format=path.suffix[1:])
    atomic.write_bytes(path, drawn.getvalue())
