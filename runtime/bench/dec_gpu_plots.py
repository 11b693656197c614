"""A picture of corrections on a GPU: how much of the link's time is hidden, by slowdown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runtime.pictures import new_figure, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Row = dict[str, Any]
_MARKERS = "os^Dv*"


def draw_efficiency(rows: Sequence[Row], path: Path) -> None:
    """Efficiency of the block against its measured slowdown, a line for each base and ratio."""
    figure = new_figure(7.5, 4.8)
    axes = figure.subplots()
    for number, (name, mine) in enumerate(_lines(rows).items()):
        _draw_line(axes, name, mine, number)
    axes.set(xlabel="measured slowdown of the block, %", ylabel="share of the link's time that is hidden")
    axes.set(xlim=(0, 20.5), title="Llama-3-8B's four linears in one graph, selection included")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.25)
    axes.legend(fontsize=9)
    save(figure, path)


def _lines(rows: Sequence[Row]) -> dict[str, list[Row]]:
    lines: dict[str, list[Row]] = {}
    for row in rows:
        lines.setdefault(f"{row['base']}, base rows {row['base rows']}", []).append(row)
    return lines


def _draw_line(axes: Axes, name: str, rows: Sequence[Row], number: int) -> None:
    measured, efficiency = [row["measured %"] for row in rows], [row["efficiency"] for row in rows]
    axes.plot(measured, efficiency, marker=_MARKERS[number % len(_MARKERS)], label=name)
