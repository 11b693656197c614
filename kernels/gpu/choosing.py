"""Which plane width and escape size every group of rows takes: exact bits, plus a price for time."""

from __future__ import annotations

import torch
from torch import Tensor

from kernels.gpu.fields import ALL_FORMS, GROUP_ROWS, LANES, Form

PATCH_BITS = 24
# A lane of a quad serves every fourth patch of its row.
PATCHES_A_ROUND = 4
# One row that escapes this often would hold up the seven others of its warp: the group takes another form.
MOST_ESCAPES = 0.25
# Time over that of one more escape, measured on an H200: a patch, a listed byte, and what a superstep takes
# because it has escapes or a list at all.
PATCH_TIME = 2.0
LISTED_TIME = 0.8
ESCAPES_TIME = 140.0
LIST_TIME = 50.0
_CHUNK = 1 << 22


def row_histograms(q: Tensor) -> Tensor:
    """int32 [rows, 256]: how often each row of int8 `q` holds -128 .. 127."""
    rows, columns = q.shape
    per_chunk = max(1, _CHUNK // columns)
    parts = []
    for first in range(0, rows, per_chunk):
        part = q[first : first + per_chunk].long() + 128
        part += 256 * torch.arange(len(part), device=q.device)[:, None]
        counts = torch.bincount(part.view(-1), minlength=256 * len(part))
        parts.append(counts.view(len(part), 256).int())
    return torch.cat(parts)


def _outside(histograms: Tensor, low: int, high: int) -> Tensor:
    """Weights of each row below `low` or above `high`, int64."""
    below = histograms[:, : low + 128].sum(1)
    return below + histograms[:, high + 129 :].sum(1)


def _group_costs(histograms: Tensor, form: Form, shape: tuple[int, int], escape_cost: float) -> Tensor:
    """Bits of each group in `form`, with the price of its time, float64; infinite where a row escapes too
    often.

    `shape` is columns and supersteps of a row.
    """
    columns, supersteps = shape
    patches = _outside(histograms, form.lowest, form.highest).view(-1, GROUP_ROWS)
    entries = LANES * ((patches.amax(1) + PATCHES_A_ROUND - 1) // PATCHES_A_ROUND)
    bits = entries * (PATCH_BITS + PATCH_TIME * escape_cost) + form.width * columns * GROUP_ROWS
    if not form.short_bits:
        return bits.double()
    beyond = _outside(histograms, form.dense_lowest, form.dense_highest).view(-1, GROUP_ROWS)
    bits = bits + 32 * supersteps
    if form.listed:
        listed = _list_bytes(beyond.sum(1), GROUP_ROWS * columns, form)
        price = escape_cost * (LISTED_TIME * listed + LIST_TIME * supersteps)
        return bits + 8 * listed + 16 * supersteps + price
    price = escape_cost * (beyond.sum(1) + ESCAPES_TIME * supersteps)
    bits = (bits + beyond.sum(1) * form.short_bits + price).double()
    bits[beyond.amax(1) > MOST_ESCAPES * columns] = torch.inf
    return bits


def _list_bytes(count: Tensor, weights: int, form: Form) -> Tensor:
    """Bytes of lists of `count` among `weights`, as expected of random places: long distances take
    several.
    """
    further = (1 - count.double() / weights) ** form.farthest
    return count / (1 - further).clamp_min(1e-9)


def choose_forms(
    histograms: Tensor, columns: int, supersteps: int, escape_cost: float, forms: tuple[Form, ...] = ALL_FORMS
) -> list[Form]:
    """The cheapest of `forms` for each group of 8 consecutive rows of `histograms`.

    `escape_cost` is what the time of an escape is worth, in bits beyond those it takes: 0 gives the
    smallest form; more trades size for speed.
    """
    costs = [_group_costs(histograms, form, (columns, supersteps), escape_cost) for form in forms]
    best = torch.stack(costs, 1).argmin(1).tolist()
    return [forms[index] for index in best]
