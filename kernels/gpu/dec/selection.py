"""The channels that a decode step corrects, in device memory: written by `prepare`, read by fetchers."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from kernels.dec.chunks import CHUNK, chunk_bounds, chunk_share

# Entries of `Selection.control`.
WANTED, IN_EFFECT, REFUSED = range(3)
# Slots after the list that fetchers may read, and never use, before they know how long it is.
PADDING = 1024


@dataclass(frozen=True, slots=True)
class Selection:
    """Chosen channels of an input of `columns` channels, chunk after chunk of 1024.

    control   int32 [3]: k_chunk wanted (per 1024 channels; set it at any time, also between replays of a
    graph), k_chunk in effect (what the last `prepare` used: 0 for a vector that is not finite), and how many
    vectors have been refused for that.
    channels  int32 [columns + PADDING]: the list; `listed(k_chunk)` of them are valid. In a chunk first those
    of fully taken buckets, then those of the last one, each by ascending index.
    values    float32, as channels: the channel's input after all factors but the common one.
    common    float32 [1]: the factor common to all values (1 / rms after a norm, else 1).
    """

    columns: int
    control: Tensor
    channels: Tensor
    values: Tensor
    common: Tensor

    def __post_init__(self) -> None:
        if self.columns < 1 or self.channels.numel() != self.columns + PADDING:
            raise ValueError(f"a list of {self.channels.numel()} slots does not fit {self.columns} channels")
        if self.values.shape != self.channels.shape or self.control.numel() != 3:
            raise ValueError("a selection needs as many values as channels, and three control words")

    def set_k_chunk(self, k_chunk: int) -> None:
        """Correct `k_chunk` channels of every 1024 from the next `prepare` on."""
        if not 0 <= k_chunk <= CHUNK:
            raise ValueError(f"k_chunk lies between 0 and {CHUNK}, not at {k_chunk}")
        self.control[WANTED : WANTED + 1].fill_(k_chunk)

    def listed(self, k_chunk: int) -> int:
        """Channels in the list for `k_chunk`."""
        return sum(chunk_share(k_chunk, stop - start) for start, stop in chunk_bounds(self.columns))

    def refused(self) -> int:
        """Vectors that held a value that is not finite; waits for the device."""
        return int(self.control[REFUSED])


def new_selection(columns: int, device: torch.device | str, k_chunk: int = 0) -> Selection:
    """An empty selection with k_chunk set; `prepare` fills it."""
    selection = Selection(
        columns=columns,
        control=torch.zeros(3, dtype=torch.int32, device=device),
        channels=torch.zeros(columns + PADDING, dtype=torch.int32, device=device),
        values=torch.zeros(columns + PADDING, dtype=torch.float32, device=device),
        common=torch.ones(1, dtype=torch.float32, device=device),
    )
    selection.set_k_chunk(k_chunk)
    return selection
