"""The base in the form of torch's CPU int4 product, `_weight_int4pack_mm_for_cpu`.

The op computes `(code - 8) * scale + zero` with tables [n_in / op_group, n_out, 2], op groups dividing n_in.
A short last group (576 = 4 x 128 + 64) is served by op groups of 64 or 32, neighbours holding equal entries.
"""

from __future__ import annotations

import torch

from kernels.dec.rtn import GroupCodes

OP_GROUPS = (256, 128, 64, 32)


def has_int4_op_group(n_in: int, group: int) -> bool:
    """Whether a group of the op divides both the stored group and n_in."""
    return any(group % candidate == 0 and n_in % candidate == 0 for candidate in OP_GROUPS)


def int4_op_group(n_in: int, group: int) -> int:
    """Largest group of the op that divides both the stored group and n_in; ValueError when there is none."""
    for candidate in OP_GROUPS:
        if group % candidate == 0 and n_in % candidate == 0:
            return candidate
    raise ValueError(f"no group of the int4 product divides both {n_in} inputs and groups of {group}")


def int4_op_codes(base: GroupCodes) -> torch.Tensor:
    """Codes int32 [n_out, n_in] centred on 8 for `_convert_weight_to_int4pack_for_cpu`; 3 bits ride in 4."""
    return base.codes.to(torch.int32) + (8 - 2 ** (base.bits - 1))


def int4_op_tables(base: GroupCodes, dtype: torch.dtype = torch.bfloat16) -> tuple[int, torch.Tensor]:
    """(op_group, scale-and-zero table [n_in / op_group, n_out, 2]) for activations of `dtype`."""
    n_in = base.codes.shape[1]
    op_group = int4_op_group(n_in, base.group)
    index = torch.arange(0, n_in, op_group) // base.group
    table = torch.stack([base.scale[:, index].t(), base.zero[:, index].t()], dim=-1)
    return op_group, table.to(dtype).contiguous()
