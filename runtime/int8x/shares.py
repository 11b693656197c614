"""How the weights of a coded tensor are spread over its streams."""

from __future__ import annotations

from dataclasses import dataclass

from kernels.int8x.adaptive import layout_of
from kernels.int8x.adaptive_streams import GROUP_ROWS
from runtime.int8x.entries import AdaptiveEntry, BitmapEntry, CodedEntry, Parts


@dataclass(frozen=True, slots=True)
class Spread:
    """`share`: weights per level width, or per stream (plane, short, byte), adding up to 1.

    `widths`: mean bits of a code of the plane and of a short code, for adaptive planes alone.
    """

    share: dict[str, float]
    widths: dict[str, float]


def spread_of(entry: CodedEntry, parts: Parts) -> Spread:
    """The spread of a tensor from its entry and its checked streams."""
    if isinstance(entry, BitmapEntry):
        pairs = zip(entry.levels, entry.counts, strict=True)
        return Spread({str(width): n / entry.weights for width, n in pairs}, {})
    if isinstance(entry, AdaptiveEntry):
        return _adaptive(entry, parts)
    return Spread({"8": 1.0}, {})


def _adaptive(entry: AdaptiveEntry, parts: Parts) -> Spread:
    layout, (n_out, n_in) = layout_of(entry.streams(parts)), entry.shape
    shorts, tails = int(layout.shorts.sum()), int(layout.tails.sum())
    straight = int(layout.tails[layout.short_width == 0].sum())
    counts = {"plane": entry.weights - shorts - straight, "short": shorts - (tails - straight), "byte": tails}
    # Only the last group may have fewer rows than the others.
    missing = layout.width[-1] * (layout.width.size * GROUP_ROWS - n_out)
    plane_bits = int(layout.width.sum() * GROUP_ROWS - missing) * n_in
    short_bits = int((layout.short_width * layout.shorts).sum())
    widths = {"plane": plane_bits / entry.weights, "short": short_bits / max(shorts, 1)}
    return Spread({name: n / entry.weights for name, n in counts.items()}, widths)
