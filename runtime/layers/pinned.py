"""A model's residuals in page-locked host memory, block after block, as far as the driver gives it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import torch

from kernels.gpu.host_memory import HostMemory, PinError, allocate
from runtime.layers.base import LinearKind

Rows = dict[LinearKind, torch.Tensor]


@dataclass(frozen=True, slots=True)
class PinnedResiduals:
    """rows: of every block that fits, by kind, int32 [n_in, ceil(n_out / 8)] that a GPU can read
    (`kernels.gpu.dec.fetch.ResidualRows`); blocks after them stay uncorrected. why: what the driver said.
    """

    memory: tuple[HostMemory, ...]
    rows: tuple[Rows, ...]
    blocks: int
    why: str = ""

    @property
    def left_out(self) -> range:
        """Blocks that stay uncorrected."""
        return range(len(self.rows), self.blocks)

    @property
    def note(self) -> str:
        """One sentence for people; empty where every block is corrected."""
        if not self.left_out:
            return ""
        first, last = self.left_out[0], self.left_out[-1]
        which = f"Block {first} stays" if first == last else f"Blocks {first} to {last} stay"
        return f"{which} uncorrected, their residuals do not fit: {self.why}."

    def close(self) -> None:
        """Let the pages go; no kernel may be reading."""
        for memory in self.memory:
            memory.close()


def pin_residuals(
    residuals: Iterable[Mapping[LinearKind, torch.Tensor]],
    blocks: int,
    take: Callable[[int], HostMemory] = allocate,
) -> PinnedResiduals:
    """Copy the residuals of `blocks` blocks, in their order, until the driver refuses (none is read then).

    `residuals`: of each block by kind, int32 [n_in, ceil(n_out / 8)] (`kernels.dec.pack_nibbles`). `take`
    gives page-locked memory of so many bytes, or raises PinError or OSError.
    """
    memory: list[HostMemory] = []
    rows: list[Rows] = []
    for block in residuals:
        try:
            memory.append(take(sum(words.nbytes for words in block.values())))
        except (PinError, OSError) as error:
            return PinnedResiduals(tuple(memory), tuple(rows), blocks, str(error))
        rows.append(_copied(block, memory[-1]))
    return PinnedResiduals(tuple(memory), tuple(rows), blocks)


def _copied(block: Mapping[LinearKind, torch.Tensor], memory: HostMemory) -> Rows:
    copies: Rows = {}
    offset = 0
    for kind, words in block.items():
        shape = (words.shape[0], words.shape[1])
        copies[kind] = memory.tensor(shape, torch.int32, offset).copy_(words)
        offset += words.nbytes
    return copies
