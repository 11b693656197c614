"""A prepared model as a GPU holds it: weights in device memory, residuals and embedding in host memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import psutil
import torch
from torch import Tensor

from kernels.gpu.embedding import HostTable
from kernels.gpu.host_memory import HostMemory, PinError, allocate
from runtime import device
from runtime.engine.gpu.head import STORED_BITS, head_weights
from runtime.engine.gpu.loading_blocks import BlockReader, ReadBlock, Rows
from runtime.engine.gpu.memory_plan import Setting
from runtime.engine.gpu.model import BlockParts, DeviceModel, LinearParts, Linears
from runtime.engine.opened import OpenedModel
from runtime.errors import DecdecError
from runtime.layers.int8 import Int8
from runtime.layers.pinned import PinnedResiduals, pin_residuals
from runtime.model.weights import EMBEDDING, FINAL_NORM, HEAD, norm_weight
from runtime.progress import JobContext
from runtime.protocol.commands import LOSSLESS
from runtime.store.units import in_words

# Host memory that is left to everything else.
HOST_RESERVE_BYTES = 1 << 30
Take = Callable[[int], HostMemory]


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """The model, its INT8-X linears where they are held beside the base, and what people should know."""

    model: DeviceModel
    lossless: tuple[Linears, ...] | None
    note: str = ""

    @property
    def bytes_on_device(self) -> int:
        """Bytes of device memory; biases that two banks share count twice."""
        linears = (linear for block in self.lossless or () for linear in block.values())
        return self.model.bytes_on_device() + sum(linear.bytes_on_device() for linear in linears)


def within_free_memory(nbytes: int) -> HostMemory:
    """Page-locked memory, unless the system needs it: what is locked is never given back under pressure."""
    available = psutil.virtual_memory().available
    if available < nbytes + HOST_RESERVE_BYTES:
        raise PinError(f"{in_words(available)} of host memory are free, and some must stay so")
    return allocate(nbytes)


class ModelLoader:
    """Loads a model once, block by block. Progress "load" in blocks; a stop is taken between two of them."""

    def __init__(
        self,
        opened: OpenedModel,
        base: str,
        setting: Setting,
        where: torch.device,
        ctx: JobContext,
        take: Take = within_free_memory,
    ) -> None:
        self._opened, self._base, self._setting, self._device = opened, base, setting, where
        self._ctx, self._take = ctx, take
        self._reader = BlockReader(opened, base, setting, where)
        self._count = len(opened.spec.layers)
        self._read: list[ReadBlock] = []
        self._lossless: list[Linears] = []

    def load(self) -> LoadedModel:
        """Raises DecdecError, Interrupted, and what torch raises when device memory runs out."""
        spec, reader = self._opened.spec, self._opened.reader
        self._ctx.progress("load", 0, self._count, "blocks")
        embedding, head, memory = self._tables()
        blocks, pinned = self._blocks()
        model = DeviceModel(
            spec=spec,
            context=self._setting.context,
            embedding=embedding,
            blocks=blocks,
            norm=norm_weight(reader, spec, FINAL_NORM, spec.hidden).to(self._device),
            head=head,
            ropes=tuple(self._ropes()),
            held=(memory, *pinned.memory),
        )
        return LoadedModel(model, tuple(self._lossless) or None, self._note(pinned.note))

    def _blocks(self) -> tuple[tuple[BlockParts, ...], PinnedResiduals]:
        """All blocks, corrected as far as their residuals could be page-locked."""
        pinned = PinnedResiduals((), (), 0)
        if self._base != LOSSLESS:
            pinned = pin_residuals(self._rows(), self._count, self._take)
        for index in range(len(self._read), self._count):
            self._read_block(index, residual=False)
        corrected = [block.corrected(rows) for block, rows in zip(self._read, pinned.rows, strict=False)]
        rest = [block.parts for block in self._read[len(corrected) :]]
        return (*corrected, *rest), pinned

    def _rows(self) -> Iterator[Rows]:
        """The residuals of one block after the other, which is read when it is its turn."""
        for index in range(self._count):
            yield self._read_block(index, residual=True)

    def _read_block(self, index: int, residual: bool) -> Rows:
        """A block and its lossless linears are on the device; its residual is given back."""
        block, rows = self._reader.block(index, residual)
        self._read.append(block)
        if self._setting.lossless is not None:
            linears = block.parts.linears
            self._lossless.append(self._reader.lossless(index, self._setting.lossless, linears))
        self._ctx.progress("load", index + 1, self._count, "blocks")
        return rows

    def _tables(self) -> tuple[HostTable, LinearParts, HostMemory]:
        """Embedding and head, and the memory that the embedding lies in."""
        spec, reader = self._opened.spec, self._opened.reader
        stored = Int8.of(reader.quantised(EMBEDDING))
        scale, factors = stored.scale.to(self._device), self._factors(stored)
        memory = self._take_for_embedding(stored.q.numel())
        codes = memory.tensor((stored.n_out, stored.n_in), torch.int8).copy_(stored.q)
        embedding = HostTable(codes, scale, factors)
        if not spec.tied:
            stored = Int8.of(reader.quantised(HEAD))
            scale, factors = stored.scale.to(self._device), self._factors(stored)
        head = head_weights(stored.q, scale, self._setting.head_bits, self._setting.packing)
        return embedding, LinearParts(head, factors), memory

    def _factors(self, table: Int8) -> Tensor | None:
        return None if table.inverse_columns is None else table.inverse_columns.to(self._device)

    def _take_for_embedding(self, nbytes: int) -> HostMemory:
        try:
            return self._take(nbytes)
        except (PinError, OSError) as error:
            fix = f"close other programs, or set {device.VARIABLE}={device.CPU}"
            raise DecdecError("The embedding cannot be kept in host memory", str(error), fix) from error

    def _ropes(self) -> Iterator[tuple[Tensor, Tensor]]:
        for rope in self._opened.spec.ropes:
            cos, sin = rope.tables(self._setting.context)
            yield cos.to(self._device), sin.to(self._device)

    def _note(self, uncorrected: str) -> str:
        """What a person would not expect."""
        bits = self._setting.head_bits
        coarse = f"The output layer is rounded to {bits} bits, for memory is short."
        return " ".join(filter(None, (uncorrected, coarse if bits != STORED_BITS else "")))
