"""Page-locked host memory that kernels read over the bus, of any size and from files.

torch's own pinned tensors take the next power of two; here a mapping (of a file, or of nothing) is
registered with the driver as it is. Without a GPU the same memory is plain.
"""

from __future__ import annotations

import mmap
import os
import weakref
from pathlib import Path
from types import TracebackType
from typing import Any

import torch
from torch import Tensor

# cudaHostRegisterPortable | cudaHostRegisterMapped: https://docs.nvidia.com/cuda/cuda-runtime-api
_FLAGS = 1 | 2
_PROBE_BYTES = 1 << 30


class PinError(RuntimeError):
    """The driver refused to page-lock memory; the message says how much and why."""


class HostMemory:
    """A run of host memory with tensor views; page-locked until closed if `pinned`.

    Views stay valid for the CPU as long as they are referenced. No kernel may be reading when it is closed.
    """

    __slots__ = ("__weakref__", "_bytes", "_finalizer", "pinned")

    def __init__(self, mapping: mmap.mmap, pin: bool | None) -> None:
        """Wrap a mapping; `pin` None: where there is a GPU. Raises PinError when the driver refuses."""
        self._bytes = torch.frombuffer(mapping, dtype=torch.uint8)
        self.pinned = torch.cuda.is_available() if pin is None else pin
        self._finalizer: weakref.finalize[..., Any] | None = None
        if self.pinned:
            _register(self._bytes)
            # The object dies before its views' memory can.
            self._finalizer = weakref.finalize(self, _unregister, self._bytes.data_ptr())

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._bytes.numel()

    def tensor(self, shape: tuple[int, ...], dtype: torch.dtype, offset: int = 0) -> Tensor:
        """A contiguous view that begins at byte `offset`. ValueError if it is misaligned or does not fit."""
        size = dtype.itemsize * torch.Size(shape).numel()
        if offset < 0 or offset % dtype.itemsize or offset + size > self.nbytes:
            raise ValueError(f"{list(shape)} of {dtype} at byte {offset} is not within {self.nbytes} bytes")
        return self._bytes[offset : offset + size].view(dtype).view(shape)

    def close(self) -> None:
        """Let the pages go; harmless when done twice."""
        if self._finalizer is not None:
            self._finalizer()
        self.pinned = False

    def __enter__(self) -> HostMemory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def allocate(nbytes: int, *, pin: bool | None = None) -> HostMemory:
    """`nbytes` of zeros, page-locked where there is a GPU. Raises PinError, or OSError out of memory."""
    if nbytes < 1:
        raise ValueError(f"{nbytes} bytes of host memory cannot be had")
    return HostMemory(mmap.mmap(-1, nbytes, access=mmap.ACCESS_COPY), pin)


def map_file(path: Path, *, pin: bool | None = None) -> HostMemory:
    """A whole file's bytes as memory of this process: changes are not written back.

    Raises PinError, OSError for a file that cannot be read, ValueError for an empty one.
    """
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            raise ValueError(f"{path} is empty")
        return HostMemory(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY), pin)


def pinnable_bytes(limit: int, step: int = _PROBE_BYTES) -> int:
    """How much can be page-locked at once: grows by `step` until the driver refuses, or up to `limit`.

    Touches what it locks (0.7 s a GiB on the host of an H200), so choose the limit below the free memory.
    Everything is let go again.
    """
    held: list[HostMemory] = []
    try:
        while step * (len(held) + 1) <= limit:
            held.append(allocate(step, pin=True))
    except (PinError, OSError):
        pass
    finally:
        for memory in held:
            memory.close()
    return step * len(held)


def _cudart() -> Any:
    torch.cuda.init()
    return torch.cuda.cudart()


def _register(octets: Tensor) -> None:
    runtime = _cudart()
    status = runtime.cudaHostRegister(octets.data_ptr(), octets.numel(), _FLAGS)
    if int(status) != 0:
        _forget_error()
        why = runtime.cudaGetErrorString(status)
        raise PinError(f"{octets.numel() / 2**30:.2f} GiB of host memory cannot be page-locked: {why}")


def _unregister(address: int) -> None:
    _cudart().cudaHostUnregister(address)


def _forget_error() -> None:
    """The runtime would report the refusal once more, to whoever launches the next kernel."""
    try:
        torch.zeros(1, device="cuda")
    except RuntimeError:
        return
