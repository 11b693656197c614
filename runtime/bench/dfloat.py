"""Lossless bf16 by the package `dfloat11`, run as its own `compress_model` and decode hook run it.

Its encoder is taken from the package by file: importing the package itself needs CuPy with a GPU and a whole
model's machinery. Source: Zhang et al., DFloat11, 2025.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
from dataclasses import dataclass
from functools import cache
from math import ceil
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

# As in `dfloat11.dfloat11`: version 0.5.0.
THREADS, BYTES_A_THREAD = 512, 8
_MISSING = "the package dfloat11 is not installed"


@dataclass(frozen=True, slots=True)
class DfloatMatrix:
    """A bf16 matrix [n_out, n_in]: Huffman coded exponents, and signs with mantissas as bytes."""

    n_out: int
    n_in: int
    luts: torch.Tensor
    exponents: torch.Tensor
    rest: torch.Tensor
    positions: torch.Tensor
    gaps: torch.Tensor
    shared_bytes: int

    @property
    def tensors(self) -> tuple[torch.Tensor, ...]:
        """In the order of the kernel's arguments."""
        return self.luts, self.exponents, self.rest, self.positions, self.gaps

    @property
    def nbytes(self) -> int:
        """Bytes of all tensors."""
        return sum(part.nbytes for part in self.tensors)


def missing() -> str:
    """Why matrices cannot be compressed here; empty if they can."""
    try:
        _encoder()
    except ImportError as error:
        return str(error)
    return ""


def compress(weight: torch.Tensor) -> DfloatMatrix:
    """A bf16 matrix on any device, compressed there where it lies; a second or more per million weights.

    ImportError where the package is missing.
    """
    encoder = _encoder()
    flat = weight.detach().cpu().contiguous().reshape(-1)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        _, counter = encoder.get_codec(flat)
        codec, _, table = encoder.get_32bit_codec(counter)
        luts = encoder.get_luts(table)
        exponents, rest, positions, gaps, _ = encoder.encode_weights([flat], codec, BYTES_A_THREAD, THREADS)
    positions = positions.view(torch.int32)
    shared = THREADS * 4 + 4 + 2 * int((positions[1:] - positions[:-1]).max())
    n_out, n_in = weight.shape
    moved = [part.to(weight.device) for part in (luts, exponents, rest, positions, gaps)]
    return DfloatMatrix(n_out, n_in, *moved, shared_bytes=shared)  # type: ignore[misc]


def decompress(matrix: DfloatMatrix) -> torch.Tensor:
    """The bf16 matrix, by the package's kernel on torch's current stream; ImportError without CuPy."""
    import cupy

    out = torch.empty(matrix.n_out, matrix.n_in, dtype=torch.bfloat16, device=matrix.rest.device)
    grid = (ceil(matrix.exponents.numel() / (THREADS * BYTES_A_THREAD)),)
    pointers = [part.data_ptr() for part in (*matrix.tensors, out)]
    sizes = [matrix.luts.shape[0], matrix.exponents.numel(), matrix.rest.numel()]
    with cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
        _kernel()(grid=grid, block=(THREADS,), shared_mem=matrix.shared_bytes, args=pointers + sizes)
    return out


@cache
def _encoder() -> ModuleType:
    spec = importlib.util.spec_from_file_location("dfloat11_encoder", _folder() / "dfloat11_utils.py")
    if spec is None or spec.loader is None:
        raise ImportError(_MISSING)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def _kernel() -> Any:
    import cupy

    return cupy.RawModule(path=str(_folder() / "decode.ptx")).get_function("decode")


def _folder() -> Path:
    found = importlib.util.find_spec("dfloat11")
    if found is None or not found.submodule_search_locations:
        raise ImportError(_MISSING)
    return Path(found.submodule_search_locations[0])
