"""A weight matrix under nested bitmaps on a device, ready to be decoded or multiplied from its streams."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import torch

from kernels.int8x import BitmapStreams, check_streams


@dataclass(frozen=True, slots=True)
class BitmapMatrix:
    """Weights [n_out, n_in] = decoded streams times scale float32 [1] or [n_out], all on one device.

    Kernels follow the streams without checks of their own: build it with `load_bitmap`, which makes sure
    that bitmaps and running counts lead nowhere outside them. Shapes and places are checked here.
    """

    streams: BitmapStreams
    n_out: int
    n_in: int
    scale: torch.Tensor

    def __post_init__(self) -> None:
        if self.n_out < 1 or self.n_in < 1 or self.n_out * self.n_in != self.streams.n:
            raise ValueError(f"{self.streams.n} weights do not fill [{self.n_out}, {self.n_in}]")
        if self.scale.dtype != torch.float32 or self.scale.dim() != 1:
            raise ValueError("the scale is not a flat float32 tensor")
        if self.scale.numel() not in (1, self.n_out):
            raise ValueError(f"{self.scale.numel()} scales for {self.n_out} rows")
        places = {part.device for part in (*parts_of(self.streams), self.scale)}
        if len(places) != 1:
            raise ValueError("streams and scale lie on different devices")

    @property
    def device(self) -> torch.device:
        """Where everything lies."""
        return self.scale.device

    @property
    def scale_stride(self) -> int:
        """Step in `scale` from one row to the next: 1, or 0 for a single scale."""
        return int(self.scale.numel() > 1)


def load_bitmap(
    streams: BitmapStreams, shape: tuple[int, int], scale: torch.Tensor, device: torch.device | str
) -> BitmapMatrix:
    """Check streams in host memory (ValueError if they contradict each other) and copy them to `device`."""
    check_streams(streams)
    moved = {
        field: tuple(part.to(device) for part in getattr(streams, field))
        for field in ("bitmaps", "block_counts", "codes")
    }
    copied = dataclasses.replace(streams, **moved)
    return BitmapMatrix(copied, *shape, scale.to(device=device, dtype=torch.float32))


def parts_of(streams: BitmapStreams) -> tuple[torch.Tensor, ...]:
    """Every tensor of the streams: bitmaps, running counts, codes."""
    return (*streams.bitmaps, *streams.block_counts, *streams.codes)
