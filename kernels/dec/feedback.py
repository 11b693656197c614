"""Rounding with feedback: what a column loses is made good in the columns that are rounded after it.

The loss of errors E = W - base is tr(E H E'), H the second moment of the inputs. With H = L D L', L unit
lower triangular, it is the sum over columns j of D[j] (E L)[j]^2, so going from the last column to the first,
the best rounding of column j is that of W[j] + sum over i > j of E[i] L[i, j]. That is GPTQ (Frantar et al.
2023) without an inverse, as in QuIP (Chee et al. 2023). Columns of large moment go first: theirs are the
errors that many others can still make good.
"""

from __future__ import annotations

import numpy as np
import torch

from kernels.dec.group_loops import round_columns
from kernels.dec.rtn import GroupCodes
from kernels.int8x.pool import for_tiles

COLUMNS_AT_ONCE = 128


def round_with_feedback(weight: torch.Tensor, moment: torch.Tensor, base: GroupCodes) -> GroupCodes:
    """The codes of `base` chosen anew for weight float32 [n_out, n_in]; its scales and zeros stay.

    moment: float32 [n_in, n_in], positive definite but for rounding.
    """
    order = moment.diagonal().argsort(stable=True)
    lower = _unit_lower(moment, order)
    rows = weight[:, order].contiguous()
    codes = _round(rows, lower, order // base.group, base)
    return GroupCodes(base.bits, base.group, codes[:, order.argsort()].contiguous(), base.scale, base.zero)


def _unit_lower(moment: torch.Tensor, order: torch.Tensor) -> torch.Tensor:
    """L of the moment's rows and columns in `order`, = L D L'.

    Where rounding left the moment short of positive definite, the diagonal grows. One more [n_in, n_in].
    """
    more = 0.0
    while True:
        lower = moment[order[:, None], order]
        lower.diagonal().add_(more)
        failed = torch.empty((), dtype=torch.int32)
        torch.linalg.cholesky_ex(lower, out=(lower, failed))
        if not failed:
            return lower.div_(lower.diagonal().clone())
        more = max(2 * more, float(moment.diagonal().mean()) / 64, torch.finfo(torch.float32).tiny)


def _round(rows: torch.Tensor, lower: torch.Tensor, groups: torch.Tensor, base: GroupCodes) -> torch.Tensor:
    """Codes uint8 [n_out, n_in] of columns already in their order; `groups` int64 [n_in] of each column."""
    codes, error = torch.empty(rows.shape, dtype=torch.uint8), torch.empty_like(rows)
    for start in reversed(range(0, rows.shape[1], COLUMNS_AT_ONCE)):
        stop = min(start + COLUMNS_AT_ONCE, rows.shape[1])
        part = slice(start, stop)
        fed = error[:, stop:] @ lower[stop:, part]
        codes[:, part], error[:, part] = _round_part(
            rows[:, part], fed, lower[part, part], groups[part], base
        )
    return codes


def _round_part(
    rows: torch.Tensor, fed: torch.Tensor, lower: torch.Tensor, groups: torch.Tensor, base: GroupCodes
) -> tuple[torch.Tensor, torch.Tensor]:
    """Codes uint8 and errors float32 [n_out, columns] of a few neighbouring columns."""
    codes, error = np.empty(rows.shape, np.uint8), np.empty(rows.shape, np.float32)
    tables = base.scale.contiguous().numpy(), base.zero.contiguous().numpy()
    half, index = np.float32(2 ** (base.bits - 1)), groups.numpy()
    given = rows.contiguous().numpy(), fed.contiguous().numpy(), lower.t().contiguous().numpy()

    def run(start: int, end: int) -> None:
        part = slice(start, end)
        scale, zero = (table[part] for table in tables)
        now, more = given[0][part], given[1][part]
        round_columns(now, more, given[2], index, scale, zero, half, codes[part], error[part])

    for_tiles(len(rows), rows.shape[1], run)
    return torch.from_numpy(codes), torch.from_numpy(error)
