"""Plain torch form of the group product."""

from __future__ import annotations

import torch
from torch import Tensor

from kernels.dec.rtn import GroupCodes


def group_weights(base: GroupCodes) -> Tensor:
    """The weights float64 [rows, columns], exactly."""
    index = torch.arange(base.codes.shape[1], device=base.codes.device) // base.group
    centred = base.codes.double() - 2 ** (base.bits - 1)
    return centred * base.scale.double()[:, index] + base.zero.double()[:, index]
