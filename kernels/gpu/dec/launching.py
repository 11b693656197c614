"""What a product kernel with the fetch role is given for it."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from kernels.gpu.dec.fetch import Fetch


def fetch_pointers(fetch: Fetch | None, unused: Tensor) -> tuple[Tensor, ...]:
    """The tensors residual, channels, values, control and partial, all `unused` without a fetch."""
    if fetch is None:
        return (unused,) * 5
    selection = fetch.selection
    return fetch.residual.words, selection.channels, selection.values, selection.control, fetch.partial


def fetch_sizes(fetch: Fetch | None, warps: int) -> tuple[int, int, int, int]:
    """Programs of `warps` warps that fetch, segment groups, words of a row, and channels of the input."""
    if fetch is None:
        return 0, 1, 1, 1
    residual = fetch.residual
    return fetch.programs(warps), residual.segment_groups(warps), residual.row_words, residual.columns


def fetch_constants(fetch: Fetch | None) -> dict[str, Any]:
    """The constexpr arguments FETCH and FETCH_...; those of absent fetches are all alike."""
    if fetch is None:
        return {"FETCH": False, "FETCH_ROWS": 4, "FETCH_SPLITS": 1, "FETCH_AHEAD": False}
    config = fetch.config
    return {
        "FETCH": True,
        "FETCH_ROWS": config.rows,
        "FETCH_SPLITS": config.splits,
        "FETCH_AHEAD": config.ahead,
    }


def check_fetch(fetch: Fetch | None, used: int, columns: int, rows: int) -> None:
    """Raise ValueError unless `fetch` corrects (some of) `rows` outputs of one vector of `columns`."""
    if fetch is None:
        return
    if used != 1:
        raise ValueError(f"one vector at a time is corrected, not {used}")
    residual = fetch.residual
    if residual.columns != columns or residual.rows > rows:
        raise ValueError(
            f"a residual of {residual.rows} x {residual.columns} does not correct {rows} x {columns}"
        )
