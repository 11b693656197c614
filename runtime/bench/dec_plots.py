"""Pictures of the DecDEC paper's figures, as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runtime.bench.dec_tables_errors import SHARES, Curve
from runtime.bench.dec_tables_outliers import CHANNELS, Outliers
from runtime.bench.dec_tables_quality import K_CHUNKS, SELECTS, Measured, one
from runtime.bench.dec_tables_times import Measured as Times
from runtime.bench.plots import blank, save
from runtime.bench.table import Table
from runtime.layers.base import LINEAR_KINDS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PERCENT = [100 * share for share in SHARES]
_TICKS = (0, *K_CHUNKS)


def draw_errors(curves: Sequence[Curve], path: Path) -> None:
    """Figure 4: a panel for every block and linear."""
    blocks = sorted({curve.block for curve in curves})
    picture = blank(13, 2.6 * len(blocks) + 0.6)
    panels = picture.subplots(len(blocks), len(LINEAR_KINDS), squeeze=False, sharex=True, sharey=True)
    for row, block in zip(panels, blocks, strict=True):
        for axes, kind in zip(row, LINEAR_KINDS, strict=True):
            found = [curve for curve in curves if (curve.block, curve.kind) == (block, kind)]
            for number, curve in enumerate(found):
                axes.plot(_PERCENT, curve.best, color=f"C{number}", label=f"{curve.base}, by magnitude")
                dashed = {"linestyle": "--", "label": f"{curve.base}, random"}
                axes.plot(_PERCENT, curve.random, color=f"C{number}", **dashed)
            axes.plot(_PERCENT, found[0].magnitude, color="black", linewidth=1, label="sorted |x|")
            axes.set_title(f"block {block + 1}, {kind}", fontsize=9)
            axes.grid(alpha=0.25)
    picture.supxlabel("channels corrected, %", fontsize=9)
    picture.supylabel("error left, and |x|, relative", fontsize=9)
    handles, labels = panels[0][0].get_legend_handles_labels()
    picture.legend(handles, labels, loc="outside upper center", ncols=5, fontsize=8)
    save(picture, path)


def draw_outliers(found: Sequence[Outliers], path: Path) -> None:
    """Figure 5, down projections: where the largest 5 % lie in every step, and what a fixed choice finds."""
    downs = [one for one in found if one.kind == "down"]
    picture = blank(4.4 * len(downs), 5.6)
    panels = picture.subplots(2, len(downs), squeeze=False, height_ratios=(2, 1), sharex=True)
    for number, outliers in enumerate(downs):
        top, bottom = panels[0][number], panels[1][number]
        steps = [step for step, places in enumerate(outliers.places) for _ in places]
        channels = [channel for places in outliers.places for channel in places]
        top.scatter(steps, channels, s=1.5, linewidths=0, color="black", rasterized=True)
        top.set(title=f"block {outliers.block + 1}, down", ylim=(0, CHANNELS))
        for share, recall in outliers.recall.items():
            bottom.plot(recall, label=f"top {100 * share:g} %", linewidth=1)
        bottom.set(xlabel="step", ylim=(0, 1))
        bottom.grid(alpha=0.25)
    panels[0][0].set_ylabel("channel of the largest 5 %")
    panels[1][0].set_ylabel("recall, fixed choice")
    panels[1][0].legend(fontsize=8)
    save(picture, path)


def draw_times(times: Times, path: Path) -> None:
    """Figure 12: a panel for every linear, a line for every number of fetch programs."""
    picture = blank(13, 3.4)
    for axes, kind in zip(picture.subplots(1, len(LINEAR_KINDS), sharey=True), LINEAR_KINDS, strict=True):
        for each in times.times:
            if each.kind == kind:
                slower = [1 + added / each.base_us for added in each.added_us]
                label = f"n_tb {each.n_tb}, {each.rows} rows" if each.n_tb else ""
                axes.plot([0, *each.k_chunk], [1, *slower], marker=".", label=label)
        axes.set(title=kind, xlabel="k_chunk")
        axes.grid(alpha=0.25)
        if any(each.n_tb for each in times.times):
            axes.legend(fontsize=8)
    picture.axes[0].set_ylabel("time over the base's")
    save(picture, path)


def draw_perplexity(measured: Measured, path: Path) -> None:
    """Figure 13: a panel for every method, a line for every number of bits."""
    methods = list(dict.fromkeys(row["base"] for row in measured))
    picture = blank(3.6 * len(methods) + 0.8, 3.8)
    panels = picture.subplots(1, len(methods), sharey=True, squeeze=False)[0]
    for axes, method in zip(panels, methods, strict=True):
        for name in dict.fromkeys(row["name"] for row in measured if row["base"] == method):
            _line(axes, [one(measured, name, k) for k in _TICKS], "ppl", name)
        axes.set(title=method, yscale="log")
    picture.axes[0].set_ylabel("perplexity")
    save(picture, path)


def draw_selection(measured: Measured, table: Table, path: Path) -> None:
    """Figure 16: perplexity above, recall below, a column of panels for every base."""
    names = list(dict.fromkeys(row["base"] for row in table.rows))
    picture = blank(4.2 * len(names) + 0.8, 5.8)
    panels = picture.subplots(2, len(names), squeeze=False, sharex=True)
    for number, name in enumerate(names):
        for select in SELECTS:
            found = [one(measured, name, k, select) for k in _TICKS]
            _line(panels[0][number], found, "ppl", select)
            _line(panels[1][number], found, "recall", select)
        panels[0][number].set(title=name, yscale="log", xlabel="")
        panels[1][number].set(ylim=(0, 1.03))
    panels[0][0].set_ylabel("perplexity")
    panels[1][0].set_ylabel("recall")
    save(picture, path)


def _line(axes: Axes, found: Sequence[dict[str, Any] | None], value: str, label: str) -> None:
    """A figure against k_chunk, evenly spaced; what was not measured is left out."""
    points = [(at, row[value]) for at, row in enumerate(found) if row and row[value] is not None]
    places, heights = [at for at, _ in points], [height for _, height in points]
    axes.plot(places, heights, marker="o", markersize=3, label=label)
    axes.set(xlabel="k_chunk", xticks=range(len(_TICKS)), xticklabels=[str(k) for k in _TICKS])
    axes.grid(alpha=0.25, which="both")
    axes.legend(fontsize=8)
