"""Residuals on their way from host memory to products of many tokens: slices of input channels are copied on
a stream of their own into two buffers by turns, the next one while the present one is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from kernels.gpu.dec.fetch import ResidualRows
from kernels.gpu.panel import Range, even_parts

# Long enough that a link reaches its full speed, and short beside what a block has.
SLICE_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class Slice:
    """Input channels `first` to before `last` of a linear's residual."""

    rows: ResidualRows
    first: int
    last: int

    @property
    def channels(self) -> Range:
        """The channels, end excluded."""
        return self.first, self.last

    @property
    def words(self) -> Tensor:
        """int32 [last - first, row_words], where the residual lies."""
        return self.rows.words[self.first : self.last]


def largest_slice(columns: int, row_bytes: int, slice_bytes: int = SLICE_BYTES) -> int:
    """Bytes of the largest of `channel_slices` of a residual with so many channels."""
    return max(last - first for first, last in even_parts((0, columns), slice_bytes // row_bytes)) * row_bytes


def channel_slices(rows: ResidualRows, slice_bytes: int = SLICE_BYTES) -> list[Slice]:
    """A residual in even slices of at most `slice_bytes`, or of a single step of 128 channels."""
    return [Slice(rows, *part) for part in even_parts((0, rows.columns), slice_bytes // rows.row_bytes)]


class ResidualStream:
    """Two buffers on the device and the stream that fills them; on a CPU they are filled at once."""

    def __init__(self, device: torch.device, nbytes: int) -> None:
        """Buffers for slices of up to `nbytes` each."""
        self._buffers = [torch.empty(nbytes // 4, dtype=torch.int32, device=device) for _ in range(2)]
        self._device = device
        self._copying: torch.cuda.Stream | None = None
        if device.type == "cuda":
            self._copying = torch.cuda.Stream(device)
            self._free = [torch.cuda.Event(), torch.cuda.Event()]
            self._ready = [torch.cuda.Event(), torch.cuda.Event()]

    @property
    def nbytes(self) -> int:
        """Bytes of device memory."""
        return sum(buffer.nbytes for buffer in self._buffers)

    def through(self, slices: Iterable[Slice]) -> Iterator[Tensor]:
        """The words of each slice on the device, in order; valid until the next but one is asked for.

        A slice must have been put to use, on the current stream, before the next is asked for: its buffer is
        then filled again. The stream may be left at any slice. Raises ValueError for a slice too large.
        """
        before: tuple[int, Tensor] | None = None
        for number, piece in enumerate(slices):
            copied = number % 2, self._copy(number % 2, piece.words)
            if before is not None:
                yield self._arrived(*before)
            before = copied
        if before is not None:
            yield self._arrived(*before)

    def _copy(self, index: int, words: Tensor) -> Tensor:
        """Begin to fill a buffer once all that now waits on the current stream is done."""
        if words.numel() > self._buffers[index].numel():
            raise ValueError(f"a slice of {words.nbytes} bytes does not fit {self._buffers[index].nbytes}")
        target = self._buffers[index][: words.numel()].view(words.shape)
        if self._copying is None:
            return target.copy_(words)
        self._free[index].record(torch.cuda.current_stream(self._device))
        self._copying.wait_event(self._free[index])
        with torch.cuda.stream(self._copying):
            target.copy_(words, non_blocking=True)
        self._ready[index].record(self._copying)
        return target

    def _arrived(self, index: int, target: Tensor) -> Tensor:
        """The buffer, once the current stream's next work may read it."""
        if self._copying is not None:
            torch.cuda.current_stream(self._device).wait_event(self._ready[index])
        return target
