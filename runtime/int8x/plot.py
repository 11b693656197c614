"""A picture of an INT8-X model: what its weights look like, and what they take."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from kernels.int8x.levels import largest
from runtime.int8x.report import TensorReport, combine
from runtime.int8x.tally import Tally
from runtime.pictures import new_figure, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Widths of fewer weights than this share would only clutter the picture.
MARKED_SHARE = 0.04
PLAIN_BITS = 8
# Rarer values than this are noise in the picture.
LEAST_SHARE = 1e-8
LABEL_POINTS = 12
_MARKERS = "osD^vP*Xdhp<>"


def draw(path: Path, title: str, tally: Tally, reports: Sequence[TensorReport]) -> None:
    """Draw a histogram of all weights by stream, and the size of every tensor against its entropy."""
    figure = new_figure(13, 5.6)
    left, right = figure.subplots(1, 2, width_ratios=(1.15, 1))
    total = combine("total", reports)
    figure.suptitle(
        f"{title}: {total.tensors} tensors, {total.weights / 1e6:.1f} M weights, {total.bits_per_weight:.3f}"
        f" bit/w (entropy {total.entropy_bits_per_weight:.3f}, Huffman {total.huffman_bits_per_weight:.3f})"
    )
    _draw_histogram(left, tally)
    _draw_tensors(right, reports)
    save(figure, path)


def _draw_histogram(axes: Axes, tally: Tally) -> None:
    values, total = range(-128, 128), torch.stack(list(tally.streams.values())).sum(0)
    everything = int(total.sum())
    bottom = max(0.5 / everything, LEAST_SHARE)
    axes.step(values, (total / everything).tolist(), where="mid", color="black", linewidth=0.9, label="all")
    for i, (stream, counts) in enumerate(sorted(tally.streams.items(), key=_stream_order)):
        share = counts.sum().item() / everything
        shares = (counts / everything).clamp(min=bottom).tolist()
        axes.step(values, shares, where="mid", color=f"C{i}", linewidth=1.3, label=f"{stream}: {share:.1%}")
        axes.fill_between(values, shares, bottom, step="mid", color=f"C{i}", alpha=0.18)
    _mark_widths(axes, tally, everything)
    axes.set(yscale="log", xlim=(-128, 128), xlabel="INT8 weight q", ylabel="share of all weights")
    axes.set_ylim(bottom=bottom)
    axes.set_title("Weights by the stream they lie in, and ends of planes or levels")
    axes.legend(loc="upper left", fontsize=9)


def _mark_widths(axes: Axes, tally: Tally, everything: float) -> None:
    """Lines where planes or levels end, each with its share of the weights, one label below the other."""
    often = {width: n for width, n in tally.widths.items() if n >= MARKED_SHARE * everything}
    for row, width in enumerate(sorted(often.keys() - {PLAIN_BITS})):
        for end in (-largest(width) - 0.5, largest(width) + 0.5):
            axes.axvline(end, color="0.35", linewidth=0.9, linestyle=":")
        axes.annotate(
            f"{width} bit: {often[width] / everything:.0%}",
            (largest(width) + 0.5, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(4, -4 - LABEL_POINTS * row),
            textcoords="offset points",
            va="top",
            fontsize=8,
        )


def _stream_order(item: tuple[str, Any]) -> tuple[int, str]:
    names = ("plane", "short codes", "bytes")
    return names.index(item[0]) if item[0] in names else len(names), item[0]


def _draw_tensors(axes: Axes, reports: Sequence[TensorReport]) -> None:
    kinds = list(dict.fromkeys(report.kind for report in reports))
    for i, kind in enumerate(kinds):
        mine = [report for report in reports if report.kind == kind]
        points = [(r.entropy_bits_per_weight, r.bits_per_weight) for r in mine]
        style: dict[str, Any] = {"s": 22, "alpha": 0.75, "color": f"C{i % 10}", "marker": _MARKERS[i % 13]}
        axes.scatter(*zip(*points, strict=True), label=kind, **style)
    entropies = [report.entropy_bits_per_weight for report in reports]
    huffman = [report.huffman_bits_per_weight for report in reports]
    axes.scatter(
        entropies, huffman, s=12, facecolors="none", edgecolors="0.3", linewidths=0.7, label="Huffman"
    )
    low, high = min(entropies, default=0.0), max([PLAIN_BITS, *(r.bits_per_weight for r in reports)])
    ends = (max(low - 0.3, 0.0), high + 0.2)
    axes.plot(ends, ends, color="0.2", linewidth=1, label="entropy: the floor")
    axes.axhline(PLAIN_BITS, color="0.5", linewidth=0.8, linestyle="--", label="plain INT8")
    axes.set(xlim=(ends[0], max(entropies, default=8.0) + 0.3), ylim=ends)
    axes.set(xlabel="entropy, bit/w", ylabel="stored size, bit/w")
    axes.set_title("Every tensor: stored size against the entropy of its weights")
    axes.legend(loc="lower right", fontsize=8, ncols=2)
    axes.grid(alpha=0.25)
