"""Pictures of the tables, as SVG."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from runtime.bench.table import Row, Table
from runtime.store.oserrors import translated

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PARTS = ("flags", "data", "tables", "scales")


def draw_sizes(table: Table, path: Path) -> None:
    """Bits per weight of every codec in table 2.3 by part, one panel for each source of weights."""
    panels = _by_weights(row for row in table.rows if row["data"] is not None)
    figure = _figure(len(panels), 3.4)
    for axes, (name, rows) in zip(
        figure.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True
    ):
        labels, bottom = [row["codec"] for row in rows], [0.0] * len(rows)
        for part in _PARTS:
            values = [row[part] for row in rows]
            axes.bar(labels, values, bottom=bottom, label=part)
            bottom = [low + value for low, value in zip(bottom, values, strict=True)]
        for x, height in enumerate(bottom):
            axes.annotate(f"{height:.2f}", (x, height), ha="center", va="bottom", fontsize=8)
        floor = [row["total"] for row in table.rows if (row["weights"], row["codec"]) == (name, "entropy")]
        if floor:
            axes.axhline(floor[0], color="black", linewidth=0.9, linestyle="--", label="entropy")
        axes.set(title=name, ylabel="bit/w", ylim=(0, 9))
        axes.tick_params(axis="x", rotation=35)
        axes.legend(fontsize=7)
    _save(figure, path)


def draw_sweep(table: Table, path: Path) -> None:
    """Table 4.2: total bits per weight against the first level, with the paper's line."""
    panels = _by_weights(table.rows)
    figure = _figure(1, 6.5)
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
    _save(figure, path)


def _by_weights(rows: Iterable[Row]) -> dict[str, list[Row]]:
    panels: dict[str, list[Row]] = {}
    for row in rows:
        panels.setdefault(row["weights"], []).append(row)
    return panels


def _figure(panels: int, width: float) -> Figure:
    # Imported here: it takes most of a second that only pictures need.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * panels, 4.6), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _save(figure: Figure, path: Path) -> None:
    with translated(path, f"Drawing {path.name}"):
        figure.savefig(path)
