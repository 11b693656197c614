"""The bucket profile on disk: each linear's calibrated input magnitudes, in descending order per chunk.

One file per model, `calibration/buckets.safetensors`, tensors `0000.qkv` … float32 [n_in]. It is taken from
the full-precision model, so every base shares it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

from kernels.dec import chunk_bounds
from runtime.layers.base import LINEAR_KINDS, LinearKind
from runtime.lowbit.files import BlockFile, serialised
from runtime.store.atomic import write_bytes

FORMAT = "decdec-buckets"
VERSION = "1"
MAX_BLOCKS = 1024

Profile = list[dict[LinearKind, torch.Tensor]]


def profile_path(folder: Path) -> Path:
    """Where a model's profile lies inside its folder."""
    return folder / "calibration" / "buckets.safetensors"


def has_profile(folder: Path) -> bool:
    """Whether the profile was written."""
    return profile_path(folder).is_file()


def write_profile(folder: Path, profile: Sequence[Mapping[LinearKind, torch.Tensor]]) -> Path:
    """Write one float32 [n_in] per block and linear kind; gives the file."""
    tensors = {
        f"{index:04d}.{kind}": block[kind].float().contiguous()
        for index, block in enumerate(profile)
        for kind in LINEAR_KINDS
    }
    metadata = {"format": FORMAT, "version": VERSION, "blocks": str(len(profile))}
    metadata |= {kind: str(profile[0][kind].numel()) for kind in LINEAR_KINDS}
    path = profile_path(folder)
    write_bytes(path, serialised(tensors, metadata))
    return path


def read_profile(folder: Path) -> Profile:
    """The profile, block by block; DecdecError names file and tensor when it is not one."""
    with BlockFile(profile_path(folder)) as file:
        file.expect("format", FORMAT)
        file.expect("version", VERSION)
        blocks = range(file.number("blocks", 1, MAX_BLOCKS))
        return [{kind: _read(file, index, kind) for kind in LINEAR_KINDS} for index in blocks]


def _read(file: BlockFile, index: int, kind: LinearKind) -> torch.Tensor:
    name = f"{index:04d}.{kind}"
    values = file.tensor(name, torch.float32, (file.number(kind, 1, 1 << 21),))
    for start, stop in chunk_bounds(len(values)):
        part = values[start:stop]
        if part[-1] < 0 or (part[1:] > part[:-1]).any():
            raise file.wrong(f"tensor {name} is not a descending list of magnitudes")
    return values
