"""Products of many tokens with packed weights: decoded to bf16 panel by panel into one buffer, corrected
there by the residual, and multiplied by cuBLAS with sums in float32.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import torch
from torch import Tensor

from kernels.gpu.dec.residual_decode import add_residual
from kernels.gpu.decode import decode_bf16
from kernels.gpu.dense.weights import DenseWeights
from kernels.gpu.fields import STEP_COLUMNS
from kernels.gpu.lowbit.group_decode import decode_groups_bf16
from kernels.gpu.lowbit.groups import DeviceGroups
from kernels.gpu.lowbit.table_decode import decode_tables_bf16
from kernels.gpu.lowbit.tables import DeviceTables
from kernels.gpu.panel import Panel, Range, even_parts
from kernels.gpu.planes import DevicePlanes
from runtime.engine.gpu.model import LinearParts
from runtime.engine.gpu.residual_stream import Slice
from runtime.layers.device_products import Weights

# What is decoded at once: it should stay in a large GPU's cache until it is multiplied.
PANEL_BYTES = 32 << 20
# With fewer outputs a large GPU's multiprocessors have too few tiles of the product; columns are then parted,
# although the sums are read and written once more for every part.
FEWEST_ROWS = 4096
_VALUE_BYTES = 2


def panels_of(
    rows: int, columns: Range, values: int, *, whole_rows: bool, fewest_rows: int = FEWEST_ROWS
) -> list[Panel]:
    """Parts of `rows` x `columns` of at most `values` weights, or of a single step of 128 columns.

    Column ranges ascend and each comes with all its row ranges; with `whole_rows` that is one.
    """
    height = rows if whole_rows else max(fewest_rows, values // (columns[1] - columns[0]))
    heights = even_parts((0, rows), height)
    widths = even_parts(columns, values // min(rows, max(last - first for first, last in heights)))
    return [Panel(row_range, column_range) for column_range in widths for row_range in heights]


def panel_buffer_bytes(rows: int, panel_bytes: int = PANEL_BYTES) -> int:
    """Bytes of the buffer that takes every panel of matrices with up to `rows` outputs."""
    return max(panel_bytes, rows * STEP_COLUMNS * _VALUE_BYTES)


class Panels:
    """The buffer that weights are decoded into, and products with what is there."""

    def __init__(
        self,
        device: torch.device,
        rows: int,
        panel_bytes: int = PANEL_BYTES,
        fewest_rows: int = FEWEST_ROWS,
    ) -> None:
        """For matrices with up to `rows` outputs; see `panel_buffer_bytes`."""
        values = panel_buffer_bytes(rows, panel_bytes) // _VALUE_BYTES
        self._buffer = torch.empty(values, dtype=torch.bfloat16, device=device)
        self._values, self._fewest_rows = panel_bytes // _VALUE_BYTES, fewest_rows

    @property
    def nbytes(self) -> int:
        """Bytes of device memory."""
        return self._buffer.nbytes

    def multiply(self, x: Tensor, linear: LinearParts, out: Tensor) -> Tensor:
        """out = x W^T without the residual: x bf16 [tokens, n_in], out float32 [tokens, n_out]."""
        return self._add(x, linear, (0, x.shape[1]), None, out)

    def multiply_corrected(
        self, x: Tensor, linear: LinearParts, slices: list[Slice], words: Iterator[Tensor], out: Tensor
    ) -> Tensor:
        """As `multiply`, with the whole residual: `words` gives those of each of `slices` on the device."""
        for piece in slices:
            self._add(x, linear, piece.channels, next(words), out)
        return out

    def _add(
        self, x: Tensor, linear: LinearParts, columns: Range, words: Tensor | None, out: Tensor
    ) -> Tensor:
        """Add a range of columns to the sums, or begin them with its first."""
        weights, residual = linear.weights, linear.residual
        for panel in self._panels(weights, columns, words is not None):
            matrix = self._panel(weights, panel, changed=words is not None)
            if words is not None and residual is not None:
                mine = words[panel.columns[0] - columns[0] : panel.columns[1] - columns[0]]
                add_residual(matrix, mine, residual.scale, panel.rows[0])
            part = out[:, slice(*panel.rows)]
            add_product(part, x[:, slice(*panel.columns)], matrix, begin=panel.columns[0] == 0)
        return out

    def _panels(self, weights: Weights, columns: Range, changed: bool) -> list[Panel]:
        if isinstance(weights, DenseWeights) and not changed:
            return [Panel((0, weights.rows), columns)]
        # The rows of planes are sorted, so that every range of rows would read nearly all of them.
        whole = isinstance(weights, DevicePlanes)
        return panels_of(weights.rows, columns, self._values, whole_rows=whole, fewest_rows=self._fewest_rows)

    def _panel(self, weights: Weights, panel: Panel, *, changed: bool) -> Tensor:
        """The panel in bf16; not `changed`: nothing will be added to it, so that a view may do."""
        if isinstance(weights, DenseWeights) and not changed:
            return weights.matrix[slice(*panel.rows), slice(*panel.columns)]
        return decode_panel(weights, panel, self._buffer[: panel.shape[0] * panel.shape[1]].view(panel.shape))


def decode_panel(weights: Weights, panel: Panel, out: Tensor) -> Tensor:
    """A panel of any kind of weights, each rounded once to bf16, into `out` of its shape."""
    if isinstance(weights, DeviceGroups):
        return decode_groups_bf16(weights, panel.rows, panel.columns, out=out)
    if isinstance(weights, DeviceTables):
        return decode_tables_bf16(weights, panel.rows, panel.columns, out=out)
    if isinstance(weights, DevicePlanes):
        return decode_bf16(weights, panel.rows, panel.columns, out=out)
    return out.copy_(weights.matrix[slice(*panel.rows), slice(*panel.columns)])


def add_product(out: Tensor, x: Tensor, matrix: Tensor, *, begin: bool) -> Tensor:
    """out += x matrix^T, or with `begin` = it: x bf16 [tokens, n_in], matrix bf16 [n_out, n_in], out float32.

    `out` may be columns of a larger tensor.
    """
    if out.device.type != "cuda":
        product = x.float() @ matrix.float().t()
        return out.copy_(product) if begin else out.add_(product)
    if begin:
        return torch.mm(x, matrix.t(), out_dtype=torch.float32, out=out)
    if _sums_in_float32(out.device):
        return torch.addmm(out, x, matrix.t(), out_dtype=torch.float32, out=out)
    return out.add_(torch.mm(x, matrix.t(), out_dtype=torch.float32))


@cache
def _sums_in_float32(device: torch.device) -> bool:
    """Whether this torch adds a product of bf16 to float32; some versions only add it to bf16."""
    x = torch.zeros(16, 16, dtype=torch.bfloat16, device=device)
    out = torch.zeros(16, 16, device=device)
    try:
        torch.addmm(out, x, x, out_dtype=torch.float32, out=out)
    except RuntimeError:
        return False
    return True
