"""A picture of a tuned device: what a linear takes by how much is corrected, and where the free part ends."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from runtime.layers.base import LINEAR_KINDS, LinearKind
from runtime.pictures import new_figure, save
from runtime.tuner.costs import knee
from runtime.tuner.search import DETENTS, at
from runtime.tuner.tuning import Tuned

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARKERS = "osD^"


def draw(path: Path, title: str, tuned: Tuned) -> None:
    """Draw latency against k_chunk for every linear, its knee marked, and the tables along the slider."""
    figure = new_figure(13, 5.2)
    left, right = figure.subplots(1, 2, width_ratios=(1.15, 1))
    figure.suptitle(title)
    for i, kind in enumerate(LINEAR_KINDS):
        _draw_latency(left, tuned, kind, i)
    left.set(
        xlabel="k_chunk: channels corrected of every 1024", ylabel="time of the linear, µs", ylim=(0, None)
    )
    left.set_title("Time of every linear; lines end the part that costs 2.5 % more than its start")
    left.legend(fontsize=9)
    left.grid(alpha=0.25)
    _draw_path(right, tuned)
    save(figure, path)


def _draw_latency(axes: Axes, tuned: Tuned, kind: LinearKind, number: int) -> None:
    curve, base = tuned.costs.added[kind], tuned.costs.base.linears[kind]
    times = [base + added for added in curve.values()]
    end, programs = knee(curve, base), tuned.launches[kind].programs
    label = f"{kind}: knee {end}" + (f", n_tb {programs}" if programs else "")
    color = f"C{number}"
    axes.plot(list(curve), times, marker=_MARKERS[number], markersize=4, color=color, label=label)
    axes.axhline(base, color=color, linewidth=0.8, linestyle=":")
    if end:
        axes.vlines(end, 0, base + curve[end], color=color, linewidth=1, linestyle="--")


def _draw_path(axes: Axes, tuned: Tuned) -> None:
    starts = [point.slowdown_pct for point in tuned.path]
    for number, kind in enumerate(LINEAR_KINDS):
        ks = [getattr(point.k_chunk, kind) for point in tuned.path]
        axes.step([*starts, DETENTS[-1]], [*ks, ks[-1]], where="post", color=f"C{number}", label=kind)
        stops = [getattr(at(tuned.path, detent), kind) for detent in DETENTS]
        axes.plot(DETENTS, stops, linestyle="", marker=_MARKERS[number], color=f"C{number}")
    axes.set(xlabel="slowdown, %", ylabel="k_chunk in force", xlim=(0, DETENTS[-1] + 0.3))
    axes.set_title("Tables along the slider; marks: detents")
    axes.legend(fontsize=9)
    axes.grid(alpha=0.25)
