"""Packing a matrix for the GPU's products: on the device, where it has memory for that, else on the CPU."""

from __future__ import annotations

import torch
from torch import Tensor

from kernels.gpu.packing import pack_planes
from kernels.gpu.planes import DevicePlanes

# Packing takes so many bytes of device memory a weight of a matrix, and so many beside.
_BYTES_A_WEIGHT, _BYTES = 4, 256 << 20


def workplace(weights: int, device: torch.device) -> torch.device:
    """Where a matrix of so many weights is packed that is for `device`."""
    if device.type == "cuda":
        free = torch.cuda.mem_get_info(device)[0]
        idle = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        if free + idle < _BYTES + _BYTES_A_WEIGHT * weights:
            return torch.device("cpu")
    return device


def planes_on(q: Tensor, scale: Tensor, packing: float, device: torch.device) -> DevicePlanes:
    """int8 codes [rows, columns] with float32 scales [rows] as planes on `device`; `packing`: the price of
    time (`escape_cost` of `pack_planes`).
    """
    place = workplace(q.numel(), device)
    return pack_planes(q.to(place), scale.to(place).contiguous(), escape_cost=packing).to(device)
